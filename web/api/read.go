package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func (s *Server) readRoutes() []route {
	return []route{
		on(http.MethodPost, "/api/sandbox/read", space.ScopeRead, about{
			id: "read", summary: "Read files, or list directories", detail: "The entry of a path that cannot be read has the error.", answer: "An entry for each path, in order.",
			example: `{"paths": ["docs/handbook/deploy.md"]}`,
		}, s.read),
	}
}

type fileView struct {
	Path      string       `json:"path"`
	Kind      string       `json:"kind" api:"enum=file|list|error"`
	Title     string       `json:"title,omitempty"`
	Content   string       `json:"content" doc:"The text, or the names in a directory or the matches of a glob."`
	Lines     int          `json:"lines,omitempty" doc:"Of the whole file." api:"minimum=0"`
	Total     int          `json:"totalLines" doc:"The same number; 0 if it is unknown, as for a list or a binary file." api:"minimum=0"`
	ETag      string       `json:"etag,omitempty"`
	Truncated bool         `json:"truncated"`
	Next      string       `json:"next,omitempty" doc:"The path to read next, for the rest."`
	Error     *errorDetail `json:"error,omitempty"`
	Matches   int          `json:"matchCount,omitempty" doc:"Of search-and-read: the number of lines of content with the largest number of the query's words, and at least 1." api:"minimum=1"`
}

type readRequest struct {
	session
	Paths []string `json:"paths" doc:"Each one of: a file (docs/nuxt/guide.md), lines of it (…md:120-180), a section (…md#heading), a directory (docs/nuxt/) or a glob (docs/**/*.md)." api:"required,minItems=1,maxItems=$paths"`
}

type filesView struct {
	session
	Files []fileView `json:"files"`
}

// read is POST /api/sandbox/read. The entry of a path that cannot be read has the error.
func (s *Server) read(c *call, a readRequest) (filesView, error) {
	switch n := len(a.Paths); {
	case n == 0:
		return filesView{}, fault.New(fault.Invalid, `Give paths to read, such as {"paths": ["docs/nuxt/guide.md"]}.`)
	case n > s.o.Limits.Paths:
		return filesView{}, tooMany("paths", n, s.o.Limits.Paths)
	}
	files, err := c.files(c.r.Context(), a.Paths)
	if err != nil {
		return filesView{}, err
	}
	return filesView{a.session.named(), files}, nil
}

func (c *call) files(ctx context.Context, paths []string) ([]fileView, error) {
	files := make([]fileView, len(paths))
	for i, p := range paths {
		f, err := c.file(ctx, p)
		switch fault.CodeOf(err) {
		case "":
		case fault.Invalid, fault.NotFound, fault.TooLarge, fault.Damaged:
			f = fileView{Path: p, Kind: "error", Error: detailOf(err)}
		default:
			return nil, err
		}
		files[i] = f
	}
	return files, nil
}

// file reads a path: a file, or a list of the names in a directory or of the matches of a
// glob.
func (c *call) file(ctx context.Context, asked string) (fileView, error) {
	p, err := inLibrary(asked)
	if err != nil {
		return fileView{}, err
	}
	if !strings.HasSuffix(p, "/") {
		f, err := c.fetch(ctx, p)
		if code := fault.CodeOf(err); code != fault.Invalid && code != fault.NotFound {
			return f, err
		}
	}
	r, err := c.tool(ctx, toolRead, map[string]any{"paths": []string{p}})
	if err != nil {
		return fileView{}, err
	}
	title, content, _ := strings.Cut(textOf(r), "\n")
	truncated := false
	if of, ok := r.Meta["files"].([]map[string]any); ok && len(of) == 1 {
		truncated, _ = of[0]["truncated"].(bool)
		if code, failed := of[0]["error"].(string); failed {
			return fileView{}, fault.New(fault.Code(code), "%s", strings.TrimSpace(content))
		}
	}
	rel, _ := fromLibrary(p)
	return fileView{Path: rel, Kind: "list", Title: strings.TrimPrefix(title, "== "), Content: content, Truncated: truncated}, nil
}

func (c *call) fetch(ctx context.Context, p string) (fileView, error) {
	r, err := c.tool(ctx, toolFetch, map[string]any{"id": p})
	if err != nil {
		return fileView{}, err
	}
	var f struct {
		Title, Text string
		Metadata    map[string]string
	}
	if err := json.Unmarshal(r.Structured, &f); err != nil {
		return fileView{}, fmt.Errorf("read the answer of fetch: %w", err)
	}
	rel, ok := fromLibrary(libraryPath(f.Metadata["path"]))
	if !ok {
		return fileView{}, fmt.Errorf("fetch of %q answered with %q, which is not in the library", p, f.Metadata["path"])
	}
	out := fileView{Path: rel, Kind: "file", Title: f.Title, Content: f.Text, ETag: f.Metadata["etag"], Truncated: f.Metadata["truncated"] == "true"}
	out.Lines, _ = strconv.Atoi(f.Metadata["lines"]) // 0 for a binary file
	out.Total = out.Lines
	if out.Next, ok = fromLibrary(libraryPath(f.Metadata["next"])); !ok {
		out.Next = ""
	}
	return out, nil
}
