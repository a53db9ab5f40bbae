package files

import (
	"archive/zip"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// download handles GET /spaces/{id}/download/{bundle|zip}. It streams the archive, so
// that memory does not depend on the size of the space.
func (s *pages) download(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	switch v.R.PathValue("kind") {
	case "bundle":
		// Readers of a space may have its whole history.
		return s.stream(v, m.ID, archiveName(m)+".bundle", "application/x-git-bundle", func(ctx context.Context, w io.Writer) error {
			return m.Bundle(ctx, w)
		})
	case "zip":
		at, _, err := web.CommitOf(v, m, v.R.URL.Query().Get("at"))
		if err != nil {
			return err
		}
		when := time.Time{}
		if log, err := m.Log(v.R.Context(), space.LogQuery{From: at, Limit: 1}); err == nil && len(log) == 1 {
			when = log[0].Time
		}
		return s.stream(v, m.ID, archiveName(m)+".zip", "application/zip", func(ctx context.Context, w io.Writer) error {
			files, err := m.Files(ctx, at, "")
			if err != nil {
				return err
			}
			return writeZip(ctx, w, archiveName(m), at, when, files, func(b space.BlobID) ([]byte, error) {
				return m.ReadBlob(ctx, b)
			})
		})
	}
	return web.ErrGone
}

// archiveName returns the name of a space in a form that is valid for a file or directory.
func archiveName(m service.View) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, m.Name)
	if name = strings.Trim(name, "-"); name == "" {
		return "space"
	}
	return name[:min(len(name), 80)]
}

// stream sends the output of write. It shows an error before the first byte as a page. A
// later error breaks the connection, so that nobody takes a partial file for a complete one.
func (s *pages) stream(v *web.Visit, id space.SpaceID, name, kind string, write func(context.Context, io.Writer) error) error {
	out := &firstByte{v: v, name: name, kind: kind}
	if v.R.Method == http.MethodHead {
		out.begin()
		return nil
	}
	ctx, w, leave, err := s.BeginDownload(v, id, false)
	if err != nil {
		return err
	}
	defer leave()
	out.to = w
	err = write(ctx, out)
	if cause := context.Cause(ctx); err != nil && cause != nil && v.R.Context().Err() == nil {
		err = cause
	}
	if err == nil || !out.begun {
		return err
	}
	s.Logger.WarnContext(v.R.Context(), "a download ended early", "page", v.R.Pattern, "error", err)
	panic(http.ErrAbortHandler)
}

// firstByte sets the headers of a download when the first byte is written.
type firstByte struct {
	v          *web.Visit
	to         io.Writer
	name, kind string
	begun      bool
}

func (w *firstByte) begin() {
	h := w.v.W.Header()
	h.Set("Content-Type", w.kind)
	h.Set("Content-Disposition", web.Attachment(w.name))
	h.Set("Content-Security-Policy", web.RawPolicy)
	w.begun = true
}

func (w *firstByte) Write(p []byte) (int, error) {
	if !w.begun {
		w.begin()
	}
	return w.to.Write(p)
}

// writeZip writes files as GitHub's archives do: in one directory, with their modes, links
// as links, and the commit as the comment of the archive. If the archive cannot contain
// some files, a file at its top lists them.
func writeZip(ctx context.Context, w io.Writer, dir string, at space.CommitID, when time.Time, files []space.Entry, content func(space.BlobID) ([]byte, error)) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestSpeed)
	})
	if err := z.SetComment(string(at)); err != nil {
		return err
	}
	var out leftOut
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if why := notInZip(f.Path); why != "" {
			out.add(f.Path, why)
			continue
		}
		data, err := content(f.Blob)
		if fault.CodeOf(err) == fault.Damaged {
			out.add(f.Path, "it is damaged on the server's disk")
			continue
		}
		if err != nil {
			return fmt.Errorf("zip: %w", err)
		}
		if f.Mode == space.Symlink {
			if err := space.CheckSymlink(f.Path, string(data)); err != nil {
				out.add(f.Path, whyOf(err))
				continue
			}
		}
		h := &zip.FileHeader{Name: dir + "/" + string(f.Path), Method: zip.Deflate, Modified: when.UTC()}
		mode := fs.FileMode(0o644)
		switch f.Mode {
		case space.Executable:
			mode = 0o755
		case space.Symlink:
			mode, h.Method = 0o777|fs.ModeSymlink, zip.Store
		}
		h.SetMode(mode)
		if err := zipFile(z, h, data); err != nil {
			return err
		}
	}
	if len(out.lines) > 0 {
		h := &zip.FileHeader{Name: dir + "/" + freeName(files), Method: zip.Deflate, Modified: when.UTC()}
		h.SetMode(0o644)
		if err := zipFile(z, h, out.text()); err != nil {
			return err
		}
	}
	return z.Close()
}

func zipFile(z *zip.Writer, h *zip.FileHeader, data []byte) error {
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("zip: %w", err)
	}
	return nil
}
