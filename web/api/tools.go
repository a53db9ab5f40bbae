package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/tools"
)

// Names of tools, without a prefix.
const (
	toolRead  = "read"
	toolFetch = "fetch"
)

// tool calls a tool over the library. An error that the tool would report to a model is
// returned as an error.
func (c *call) tool(ctx context.Context, name string, args map[string]any) (tools.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return tools.Result{}, fmt.Errorf("arguments of %s: %w", name, err)
	}
	if err := c.openLibrary(); err != nil {
		return tools.Result{}, err
	}
	p := c.p
	p.Space, p.SpaceName = tools.LibraryOnly, "library"
	r, err := c.s.o.Tools.Call(ctx, tools.Caller{Actor: service.Client(p, "api"), Origin: c.s.o.Origin(c.r), Seen: c.seen}, name, raw, nil)
	if err != nil {
		return tools.Result{}, err
	}
	if code, failed := r.Meta["error"].(string); failed && r.IsError {
		return tools.Result{}, fault.New(fault.Code(code), "%s", textOf(r))
	}
	return r, nil
}

// openLibrary opens the library once, so that a request reads and searches the same
// snapshots.
func (c *call) openLibrary() (err error) {
	if c.library != nil {
		return nil
	}
	if c.library, err = c.s.o.Service.OpenLibrary(c.r.Context(), c.actor()); err == nil {
		c.seen = tools.Of(c.library)
	}
	return err
}

func textOf(r tools.Result) string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}
