package admin

import (
	"context"
	"encoding/json"
	"io"

	"satchel/internal/space"
)

// Service is what the command line may ask for. Errors are fault.Errors whose
// message is for the operator.
type Service interface {
	// Info reports what runs.
	Info(ctx context.Context) (Info, error)
	// Perform performs an operation of the service for the operator; Do is its typed
	// form. The input and the result are JSON.
	Perform(ctx context.Context, operation string, in json.RawMessage) (json.RawMessage, error)

	// Import fills a person's space from a stream (see ImportRequest.Kind). Where
	// reading the stream fails the error is the stream's, and nothing has changed.
	// The stream may still be read when Import returns, until it is closed.
	Import(ctx context.Context, r ImportRequest, stream io.Reader, progress func(string)) (ImportResult, error)

	// DeleteSpace deletes a space, and all that it holds, or tells what that would be.
	DeleteSpace(ctx context.Context, r DeleteRequest) (DeletedSpace, error)

	Remotes
	Searching
	Upkeep
}

// Info is what runs.
type Info struct {
	Version string `json:"version"`
	// Passing is set where a client's own process serves for as long as that
	// client runs (satchel stdio where no server ran).
	Passing bool `json:"passing,omitempty"`
	// URL is the MCP endpoint as clients on this machine reach it; empty if
	// no server runs.
	URL string `json:"url"`
	// MaxFile is how many bytes a file of a space may have.
	MaxFile int64 `json:"max_file"`
}

// ImportRequest says into whose space a stream goes. An empty User is the first
// admin.
type ImportRequest struct {
	User   string
	Kind   string // KindBundle or KindTar
	Source string // for the commit message: what the operator named, without credentials
}

// The kinds of streams that Import reads.
const (
	KindBundle = "bundle" // a git bundle with one head
	KindTar    = "tar"    // regular files and symbolic links
)

// ImportResult is what came of an Import.
type ImportResult struct {
	Commit    space.CommitID `json:"commit"`
	Files     int            `json:"files"`
	History   bool           `json:"history"` // the source's history became the space's
	Refused   []Refused      `json:"refused,omitempty"`
	Conflicts []Conflict     `json:"conflicts,omitempty"` // where both versions were kept
	Replaced  []string       `json:"replaced,omitempty"`  // what nobody had changed since the space began
	Warnings  []Warning      `json:"warnings,omitempty"`  // imported content that looks like a secret
	Changed   bool           `json:"changed"`             // false: the space had it all
}

// Conflict is a file of which the space has another version.
type Conflict struct {
	Path string `json:"path"` // has the space's
	Kept string `json:"kept"` // has the imported one
}

// Warning is a problem with a file that was imported all the same.
type Warning struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Refused is a file that was left out.
type Refused struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}
