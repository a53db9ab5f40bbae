package web

import (
	"mime"
	"mime/multipart"
	"strings"
)

// SentPath returns the path that a browser sent with a file. If a person chose a directory, the
// path begins with its name; FileHeader.Filename has only the last name of the path. The
// caller must check the path with space.ParsePath.
func SentPath(h *multipart.FileHeader) (string, error) {
	_, params, err := mime.ParseMediaType(h.Header.Get("Content-Disposition"))
	if err != nil {
		return "", BadForm(err)
	}
	// Browsers encode three characters of a name, and no others (HTML, section 4.10.21.8).
	return strings.NewReplacer("%22", `"`, "%0A", "\n", "%0D", "\r").Replace(params["filename"]), nil
}
