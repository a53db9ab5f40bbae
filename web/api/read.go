package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"satchel/internal/fault"
)

type fileBody struct {
	Path string `json:"path"`
	// Kind is "file" or "list"; "error" where Error says what is wrong.
	Kind    string `json:"kind"`
	Title   string `json:"title,omitempty"`
	Content string `json:"content"`
	Lines   int    `json:"lines,omitempty"` // of the whole file
	ETag    string `json:"etag,omitempty"`
	// Next is what to read to go on where Content was cut.
	Truncated bool         `json:"truncated"`
	Next      string       `json:"next,omitempty"`
	Error     *errorDetail `json:"error,omitempty"`
}

// read is POST /api/sandbox/read. A path that cannot be read is told in its
// place, and the others are read.
func (s *Server) read(c *call) error {
	var a struct {
		session
		Paths []string `json:"paths"`
	}
	if err := c.decode(&a); err != nil {
		return err
	}
	switch n := len(a.Paths); {
	case n == 0:
		return fault.New(fault.Invalid, `Name what to read, such as {"paths": ["docs/nuxt/guide.md"]}.`)
	case n > s.o.Limits.Paths:
		return tooMany("paths", n, s.o.Limits.Paths)
	}
	files, err := c.files(c.r.Context(), a.Paths)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, struct {
		session
		Files []fileBody `json:"files"`
	}{a.session, files})
}

func (c *call) files(ctx context.Context, paths []string) ([]fileBody, error) {
	files := make([]fileBody, len(paths))
	for i, p := range paths {
		f, err := c.file(ctx, p)
		switch fault.CodeOf(err) {
		case "":
		case fault.Invalid, fault.NotFound, fault.TooLarge, fault.Damaged:
			f = fileBody{Path: p, Kind: "error", Error: detailOf(err)}
		default:
			return nil, err
		}
		files[i] = f
	}
	return files, nil
}

// file reads one path: a file, or a list of a directory's or of what a pattern
// matches.
func (c *call) file(ctx context.Context, asked string) (fileBody, error) {
	p, err := inLibrary(asked)
	if err != nil {
		return fileBody{}, err
	}
	if !strings.HasSuffix(p, "/") {
		f, err := c.fetch(ctx, p)
		if code := fault.CodeOf(err); code != fault.Invalid && code != fault.NotFound {
			return f, err
		}
	}
	r, err := c.tool(ctx, toolRead, map[string]any{"paths": []string{p}})
	if err != nil {
		return fileBody{}, err
	}
	title, content, _ := strings.Cut(textOf(r), "\n")
	truncated := false
	if of, ok := r.Meta["files"].([]map[string]any); ok && len(of) == 1 {
		truncated, _ = of[0]["truncated"].(bool)
		if code, failed := of[0]["error"].(string); failed {
			return fileBody{}, fault.New(fault.Code(code), "%s", strings.TrimSpace(content))
		}
	}
	rel, _ := fromLibrary(p)
	return fileBody{Path: rel, Kind: "list", Title: strings.TrimPrefix(title, "== "), Content: content, Truncated: truncated}, nil
}

func (c *call) fetch(ctx context.Context, p string) (fileBody, error) {
	r, err := c.tool(ctx, toolFetch, map[string]any{"id": p})
	if err != nil {
		return fileBody{}, err
	}
	var f struct {
		Title, Text string
		Metadata    map[string]string
	}
	if err := json.Unmarshal(r.Structured, &f); err != nil {
		return fileBody{}, fmt.Errorf("read the answer of fetch: %w", err)
	}
	rel, ok := fromLibrary(libraryPath(f.Metadata["path"]))
	if !ok {
		return fileBody{}, fmt.Errorf("fetch of %q answered with %q, which is not in the library", p, f.Metadata["path"])
	}
	out := fileBody{Path: rel, Kind: "file", Title: f.Title, Content: f.Text, ETag: f.Metadata["etag"], Truncated: f.Metadata["truncated"] == "true"}
	out.Lines, _ = strconv.Atoi(f.Metadata["lines"]) // none of a binary file
	if out.Next, ok = fromLibrary(libraryPath(f.Metadata["next"])); !ok {
		out.Next = ""
	}
	return out, nil
}
