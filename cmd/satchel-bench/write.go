//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// benchWrite measures how long it takes to save a fact, write a new file and edit a file,
// and compares each tool with a command of bash that does the same.
func benchWrite(ctx context.Context, b *bench) error {
	s, c, err := b.serveOne(ctx, "write")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	page := strings.Repeat("A line of some fifty characters, to be kept as it is.\n", 80)
	for range 3 {
		if err := c.bash(ctx, "true"); err != nil { // start the sandbox
			return err
		}
	}
	if _, err := c.call(ctx, "write", map[string]any{"path": "knowledge/edited.md", "content": page + "round 0\n"}); err != nil {
		return err
	}
	if err := c.bash(ctx, "cp knowledge/edited.md knowledge/edited-by-bash.md"); err != nil {
		return err
	}
	for _, m := range []struct {
		name, tool string
		args       func(i int) map[string]any
		command    func(i int) string
	}{
		{
			"remember_p50", "remember",
			func(i int) map[string]any {
				return map[string]any{"facts": []map[string]any{{"type": "fact", "key": fmt.Sprint("k", i), "value": fmt.Sprintf("Fact number %d of this measurement", i), "explicit": true}}}
			},
			func(i int) string {
				return fmt.Sprintf(`mkdir -p memory/bash; printf -- '---\nvalue: Fact number %d of this measurement\n---\n' > memory/bash/k%d.md`, i, i)
			},
		},
		{
			"write_p50", "write",
			func(i int) map[string]any {
				return map[string]any{"path": fmt.Sprintf("knowledge/tool/%d.md", i), "content": fmt.Sprintf("# Page %d\n%s", i, page)}
			},
			func(i int) string {
				return fmt.Sprintf("mkdir -p knowledge/bash; cat > knowledge/bash/%d.md <<'END'\n# Page %d\n%sEND", i, i, page)
			},
		},
		{
			"edit_p50", "edit",
			func(i int) map[string]any {
				return map[string]any{"path": "knowledge/edited.md", "edits": []map[string]any{{"old": fmt.Sprintf("round %d\n", i), "new": fmt.Sprintf("round %d\n", i+1)}}}
			},
			func(i int) string {
				return fmt.Sprintf("sed -i 's/^round %d$/round %d/' knowledge/edited-by-bash.md", i, i+1)
			},
		},
	} {
		var ours, theirs times
		const warm = 3
		for i := range b.runs(200) + warm {
			if i == warm {
				ours, theirs = nil, nil
			}
			time.Sleep(pause)
			if err := ours.add(func() error {
				_, err := c.call(ctx, m.tool, m.args(i))
				return err
			}); err != nil {
				return err
			}
			time.Sleep(pause)
			if err := theirs.add(func() error { return c.bash(ctx, m.command(i)) }); err != nil {
				return err
			}
		}
		b.versus(m.name, ours.median(), "ms", "the same with bash in a running sandbox", theirs.median())
	}
	return nil
}

// benchRemember saves facts with several clients of one person at once, and counts the
// facts that the space has afterwards.
func benchRemember(ctx context.Context, b *bench) error {
	const clients, each = 4, 50
	s, first, err := b.serveOne(ctx, "remember")
	if err != nil {
		return err
	}
	defer s.stop()
	defer first.close()
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for n := range clients {
		var t struct{ Token string }
		if err := s.admin(ctx, &t, "token", "create", "--user", "ada"); err != nil {
			return err
		}
		c, err := connect(ctx, "http://"+s.addr+"/mcp", t.Token)
		if err != nil {
			return err
		}
		defer c.close()
		wg.Go(func() {
			for i := range each {
				fact := map[string]any{"type": "fact", "key": fmt.Sprintf("client-%d-%d", n, i), "value": fmt.Sprintf("Fact %d of client %d", i, n)}
				if _, err := c.call(ctx, "remember", map[string]any{"facts": []map[string]any{fact}}); err != nil {
					errs[n] = errors.Join(errs[n], err) // the number of facts shows how many calls failed
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.log("remember at once: %v", err)
	}
	text, err := first.call(ctx, "bash_readonly", map[string]any{"command": "ls memory/fact | wc -l"})
	if err != nil {
		return err
	}
	var there int
	if _, err := fmt.Sscan(text, &there); err != nil {
		return err
	}
	b.versus("remember_concurrent", float64(there), "facts", "the facts that were saved", clients*each)
	return nil
}
