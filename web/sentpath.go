package web

import (
	"mime"
	"mime/multipart"
)

// SentPath returns the path that a browser sent with a file. If a person chose a directory, the
// path begins with its name; FileHeader.Filename has only the last name of the path. Nothing of
// the path is checked: see space.ParsePath.
func SentPath(h *multipart.FileHeader) (string, error) {
	_, params, err := mime.ParseMediaType(h.Header.Get("Content-Disposition"))
	if err != nil {
		return "", BadForm(err)
	}
	return params["filename"], nil
}
