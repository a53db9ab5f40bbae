package integrations

import (
	"archive/tar"
	"compress/gzip"
	"io"
)

// WriteArchive writes the files to a tar.gz archive, in the directory c.Slug.
func (c Client) WriteArchive(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range c.Files {
		h := &tar.Header{Name: c.Slug + "/" + f.Path, Mode: 0o644, Size: int64(len(f.Content)), Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.WriteString(t, f.Content); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
