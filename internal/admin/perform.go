package admin

import (
	"context"
	"encoding/json"

	"satchel/internal/fault"
	"satchel/internal/service"
)

// Do performs an operation of the service for the operator, on the running server or on the
// data directory that this process has open. A long operation reports its steps to the
// progress of ctx (service.WithProgress).
func Do[In, Out any](ctx context.Context, s Service, m service.Method[In, Out], in In) (Out, error) {
	var out Out
	b, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	if b, err = s.Perform(ctx, m.Name(), b); err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fault.Wrap(err, fault.Unavailable, "The running server's answer could not be read.")
	}
	return out, nil
}

// Perform asks the server, and reports the steps of the work to the progress of ctx.
func (c *Remote) Perform(ctx context.Context, operation string, in json.RawMessage) (json.RawMessage, error) {
	out, err := callLong[performResult](ctx, c, "operations", performRequest{operation, in}, service.Progress(ctx))
	return out.Value, err
}

// performRequest is the socket's request for an operation.
type performRequest struct {
	Operation string          `json:"operation"`
	Input     json.RawMessage `json:"input"`
}

// performResult holds the result of an operation, which may be null.
type performResult struct {
	Value json.RawMessage `json:"value"`
}

func handleOperations(m *socketMux, s Service) {
	handleLong(m, "operations", func(ctx context.Context, in performRequest, progress func(string)) (performResult, error) {
		out, err := s.Perform(service.WithProgress(ctx, progress), in.Operation, in.Input)
		return performResult{out}, err
	})
}
