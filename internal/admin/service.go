package admin

import (
	"context"
	"encoding/json"

	"satchel/internal/service"
)

// Service performs operations for the command line. Errors are fault.Errors with messages
// for the operator.
type Service interface {
	// Info describes the running server.
	Info(ctx context.Context) (Info, error)
	// Perform performs an operation of the service for the operator. Do is its typed
	// variant. The input and the result are JSON.
	Perform(ctx context.Context, operation string, in json.RawMessage) (json.RawMessage, error)

	// Import performs service.ImportSpace. If reading the stream fails, the error is the
	// stream's.
	Import(ctx context.Context, in service.ImportSpaceInput) (service.ImportResult, error)
	// ImportMemory performs service.ImportMemory. If reading the stream fails, the error is
	// the stream's.
	ImportMemory(ctx context.Context, in service.ImportMemoryInput) (service.ImportedMemory, error)
	// UploadToSource performs service.UploadToSource. If reading the stream fails, the error is
	// the stream's.
	UploadToSource(ctx context.Context, in service.UploadToSourceInput) (service.UploadedToSource, error)
}

// Info describes the running server.
type Info struct {
	Version string `json:"version"`
	// Passing means that the server is a client's own process and ends with the client
	// (satchel stdio, if no server ran before).
	Passing bool `json:"passing,omitempty"`
	// URL is the MCP endpoint for clients on this machine. It is empty if no server runs.
	URL string `json:"url"`
	// MaxFile is the largest size of a file in a space, in bytes.
	MaxFile int64 `json:"max_file"`
}
