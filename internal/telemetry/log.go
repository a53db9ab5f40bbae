package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// LogOptions describe how records are written.
type LogOptions struct {
	Writer io.Writer // in the server, standard error
	Level  string    // debug, info, warn or error; empty: info
	Format string    // text or json; empty: text
}

// NewLogger returns a logger that adds the request id of the context to each record. It redacts
// what Redact finds, and values of attributes with the names of secrets.
func NewLogger(o LogOptions) (*slog.Logger, error) {
	var level slog.Level
	if o.Level != "" {
		if err := level.UnmarshalText([]byte(o.Level)); err != nil {
			return nil, fmt.Errorf("log level: %w", err)
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.Format {
	case "", "text":
		return slog.New(NewHandler(slog.NewTextHandler(o.Writer, opts))), nil
	case "json":
		return slog.New(NewHandler(slog.NewJSONHandler(o.Writer, opts))), nil
	}
	return nil, fmt.Errorf("log format: unknown format %q", o.Format)
}

// handler redacts records, adds the request id, and passes them to next.
type handler struct{ next slog.Handler }

// NewHandler returns a handler that changes records as NewLogger describes, and passes them to
// next.
func NewHandler(next slog.Handler) slog.Handler { return &handler{next: next} }

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, Redact(r.Message), r.PC)
	if id := RequestID(ctx); id != "" {
		out.AddAttrs(slog.String("request_id", id))
	}
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(redactAttr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = redactAttr(a)
	}
	return &handler{next: h.next.WithAttrs(clean)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name)}
}
