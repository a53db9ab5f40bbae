//go:build linux

package main

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
)

// benchRead reads one file, and compares this with an mcp-go server that returns a text of the
// same size.
func benchRead(ctx context.Context, b *bench) error {
	s, c, err := b.serveOne(ctx, "read")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	if _, err := c.call(ctx, "bash", map[string]any{"command": "for i in $(seq 80); do echo 'A line of some fifty characters, to be read again.'; done > knowledge/page.md"}); err != nil {
		return err
	}
	text, err := c.call(ctx, "read", map[string]any{"paths": []string{"knowledge/page.md"}})
	if err != nil {
		return err
	}

	echo := exec.CommandContext(ctx, b.self, echoCommand)
	out, err := echo.StdoutPipe()
	if err != nil {
		return err
	}
	if err := echo.Start(); err != nil {
		return err
	}
	defer func() { _ = echo.Process.Kill(); _ = echo.Wait() }()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	e, err := connect(ctx, "http://"+strings.TrimSpace(addr)+"/mcp", "none")
	if err != nil {
		return err
	}
	defer e.close()

	var ours, theirs times
	for i := range b.runs(2000) + 20 {
		if i == 20 {
			ours, theirs = nil, nil // the first 20 runs only warm the caches
		}
		if err := ours.add(func() error {
			_, err := c.call(ctx, "read", map[string]any{"paths": []string{"knowledge/page.md"}})
			return err
		}); err != nil {
			return err
		}
		if err := theirs.add(func() error {
			_, err := e.call(ctx, "read", map[string]any{"text": text})
			return err
		}); err != nil {
			return err
		}
	}
	b.versus("read_p50", ours.median(), "ms", "a bare mcp-go echo tool", theirs.median())
	return nil
}
