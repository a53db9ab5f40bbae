//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"satchel/internal/procmem"
)

// rest is how long a server is idle before its memory is measured. By then, the server has
// checked whether sandboxes can start.
const rest = 3 * time.Second

// idleMemory measures the memory of a server that has served nothing yet, including the child that
// owns its sandboxes. It also measures the memory of a sandbox that has run one command.
func idleMemory(ctx context.Context, b *bench) error {
	s, err := b.serve(ctx, "idle", noSpare)
	if err != nil {
		return err
	}
	defer s.stop()
	time.Sleep(rest)
	server := s.cmd.Process.Pid
	b.alone("rss_idle", float64(procmem.Of(append(procmem.Descendants(server), server)...).PSS)/1e6, "MB")

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
	// A sandbox returns memory after it has been idle for a while, so take the minimum of ten
	// seconds.
	least := math.Inf(1)
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		least = min(least, sandboxMemory(s.cmd.Process.Pid))
	}
	b.alone("rss_sandbox", least/users, "MB")
	b.alone("sandboxes_per_gb", 1000/(least/users), "sandboxes")
	return nil
}

// sandboxMemory sums the memory of all processes of all sandboxes, in MB. It omits the server's
// child that owns the sandboxes, because that runs even if there are none.
func sandboxMemory(server int) float64 {
	below := slices.DeleteFunc(procmem.Descendants(server), func(pid int) bool {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || strings.HasSuffix(string(args), "\x00runtime\x00")
	})
	return float64(procmem.Of(below...).PSS) / 1e6
}
