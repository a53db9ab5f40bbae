//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// idleMemory measures a server that has served nothing yet, and a sandbox that
// has run one command.
func idleMemory(ctx context.Context, b *bench) error {
	s, err := b.serve(ctx, "idle")
	if err != nil {
		return err
	}
	defer s.stop()
	idle, err := pss(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	b.alone("rss_idle", idle, "MB")

	const users = 3
	for i := range users {
		c, err := s.user(ctx, fmt.Sprintf("user%d", i))
		if err != nil {
			return err
		}
		defer c.close()
		if _, err := c.call(ctx, "bash", map[string]any{"command": "true"}); err != nil {
			return err
		}
	}
	// A sandbox gives memory back when it has been idle for a while: measured
	// is the least of ten seconds.
	least := math.Inf(1)
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		total, err := sandboxMemory(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		least = min(least, total)
	}
	b.alone("rss_sandbox", least/users, "MB")
	b.alone("sandboxes_per_gb", 1000/(least/users), "sandboxes")
	return nil
}

// sandboxMemory sums the memory of all processes of all sandboxes. The server's
// own child, which owns them, is there with and without any.
func sandboxMemory(server int) (float64, error) {
	owners, err := childrenOf(server)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, o := range owners {
		below, err := descendants(o)
		if err != nil {
			return 0, err
		}
		for _, p := range below {
			m, err := pss(p)
			if err != nil {
				return 0, err
			}
			total += m
		}
	}
	return total, nil
}
