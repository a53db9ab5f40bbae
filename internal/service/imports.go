package service

import (
	"context"
	"io"
	"strings"
	"unicode"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// The kinds of streams that ImportSpace reads.
const (
	ImportBundle = "bundle" // a git bundle with one head
	ImportTar    = "tar"    // regular files and symbolic links
)

// ToolImport is the tool that the metadata of imported commits names.
const ToolImport = "import"

// ImportSpaceInput is a stream of files for a space.
type ImportSpaceInput struct {
	Space  SpaceRef
	Kind   string // ImportBundle or ImportTar
	Source string // origin of the stream, for the commit message; without credentials
	// Stream may still be read after ImportSpace has returned, until it is closed.
	Stream io.Reader
}

// ImportResult describes an import. Its JSON is part of the command line's contract.
type ImportResult struct {
	Commit    space.CommitID   `json:"commit"`
	Files     int              `json:"files"`
	History   bool             `json:"history"` // the space took over the history of the source
	Refused   []ImportNote     `json:"refused,omitempty"`
	Conflicts []ImportConflict `json:"conflicts,omitempty"` // files kept in both versions
	Replaced  []string         `json:"replaced,omitempty"`  // replaced unchanged initial files
	Warnings  []ImportNote     `json:"warnings,omitempty"`  // imported files that need a look
	Changed   bool             `json:"changed"`             // false if nothing was new to the space
}

// ImportNote says why a file was not imported or needs attention.
type ImportNote struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// ImportConflict is an imported file that differs from the file in the space.
type ImportConflict struct {
	Path string `json:"path"` // the path of the space's version
	Kept string `json:"kept"` // the path at which the imported version was kept
}

// ImportSpace imports a stream into a space. If it fails, it changes nothing.
func (s *Service) ImportSpace(ctx context.Context, a Actor, in ImportSpaceInput) (ImportResult, error) {
	m, err := s.authorizeSpace(ctx, a, "ImportSpace", in.Space)
	if err != nil {
		return ImportResult{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return ImportResult{}, err
	}
	var src gitstore.ImportSource
	switch in.Kind {
	case ImportBundle:
		src = gitstore.FromBundle(in.Stream)
	case ImportTar:
		src = gitstore.FromTar(in.Stream)
	default:
		return ImportResult{}, fault.New(fault.Invalid, "%q is not a kind of import.", in.Kind)
	}
	meta := who.commitMeta(ToolImport, "Import "+oneLine(in.Source))
	res, err := s.git.Import(ctx, m.ID, src, meta, Progress(ctx))
	if err != nil {
		return ImportResult{}, err
	}
	out := ImportResult{Commit: res.Commit.ID, Files: res.Files, History: res.History, Changed: res.Commit.Changed}
	for _, n := range res.Notes {
		out.Refused = append(out.Refused, ImportNote{n.Path, n.Why})
	}
	for _, w := range res.Commit.Warnings {
		out.Warnings = append(out.Warnings, ImportNote(w))
	}
	for _, c := range res.Commit.Conflicts {
		out.Conflicts = append(out.Conflicts, ImportConflict{string(c.Path), string(c.Kept)})
	}
	for _, p := range res.Replaced {
		out.Replaced = append(out.Replaced, string(p))
	}
	return out, nil
}

// maxSource limits the name of a source in a commit message, in characters.
const maxSource = 200

// oneLine returns a text in a form that is safe in the first line of a commit message. Without
// oneLine, text after a line break could pass for trailers.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if r := []rune(text); len(r) > maxSource {
		text = string(r[:maxSource]) + "…"
	}
	return strings.TrimSpace(text)
}
