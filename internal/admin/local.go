package admin

import (
	"context"
	"encoding/json"
	"slices"

	"satchel/internal/fault"
	"satchel/internal/service"
)

// Local is a Service on a data directory that this process has open.
type Local struct {
	Service *service.Service
	// Running is the result of Info.
	Running Info
}

var _ Service = (*Local)(nil)

// Info implements Service.
func (l *Local) Info(context.Context) (Info, error) { return l.Running, nil }

// Perform performs an operation on this process's data directory.
func (l *Local) Perform(ctx context.Context, operation string, in json.RawMessage) (json.RawMessage, error) {
	all := service.Operations()
	i := slices.IndexFunc(all, func(o service.Operation) bool { return o.Name == operation && o.HasJSON() })
	if i < 0 {
		return nil, fault.New(fault.Invalid, "The server does not know this command. Restart it with this version of satchel.")
	}
	out, err := all[i].Call(ctx, l.Service, service.Operator(), in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Import imports the files of a stream into a space.
func (l *Local) Import(ctx context.Context, in service.ImportSpaceInput) (service.ImportResult, error) {
	body := &watched{r: in.Stream}
	in.Stream = body
	out, err := l.Service.ImportSpace(ctx, service.Operator(), in)
	if failed := body.failure(); err != nil && failed != nil {
		return service.ImportResult{}, failed
	}
	return out, err
}

// ImportMemory imports an export of another program.
func (l *Local) ImportMemory(ctx context.Context, in service.ImportMemoryInput) (service.ImportedMemory, error) {
	body := &watched{r: in.Stream}
	in.Stream = body
	out, err := l.Service.ImportMemory(ctx, service.Operator(), in)
	if failed := body.failure(); err != nil && failed != nil {
		return service.ImportedMemory{}, failed
	}
	return out, err
}

// UploadToSource adds a file to a source.
func (l *Local) UploadToSource(ctx context.Context, in service.UploadToSourceInput) (service.UploadedToSource, error) {
	body := &watched{r: in.Stream}
	in.Stream = body
	out, err := l.Service.UploadToSource(ctx, service.Operator(), in)
	if failed := body.failure(); err != nil && failed != nil {
		return service.UploadedToSource{}, failed
	}
	return out, err
}
