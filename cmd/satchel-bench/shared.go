//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// benchShared measures what a person gets who accepts a shared kernel: the
// same server with its sandboxes in crun, beside those in gVisor. Where crun
// cannot be had it is left out.
func benchShared(ctx context.Context, b *bench) error {
	const inCrun = "SATCHEL_SANDBOX_RUNTIME=crun"
	s, c, err := b.crun(ctx, "crun", inCrun)
	if err != nil {
		b.log("crun is left out: %v", err)
		return nil
	}
	defer s.stop()
	defer c.close()
	dir, err := b.corpusRepository(ctx, "crun-corpus", b.size(1000), 10_000)
	if err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	g, err := b.serve(ctx, "crun-gvisor")
	if err != nil {
		return err
	}
	defer g.stop()
	others, err := g.users(ctx, 1, dir)
	if err != nil {
		return err
	}
	defer closeAll(others)
	for _, m := range []struct{ figure, command string }{
		{"crun_warm_p50", "true"},
		{"crun_grep_p50", "grep -rn " + rareWord + " knowledge || true"},
	} {
		ours, theirs, err := b.pairs(b.runs(60), func() error { return c.bash(ctx, m.command) }, func() error { return others[0].bash(ctx, m.command) })
		if err != nil {
			return err
		}
		b.versus(m.figure, ours.median(), "ms", "the same in gVisor", theirs.median())
	}
	if err := b.memoryBeside("crun_rss_sandbox", s, g); err != nil {
		return err
	}
	return b.crunCold(ctx, dir, inCrun)
}

// crun starts a server whose sandboxes run in crun, and one of them.
func (b *bench) crun(ctx context.Context, name string, env ...string) (*server, *client, error) {
	s, c, err := b.serveOne(ctx, name, env...)
	if err != nil {
		return nil, nil, err
	}
	if err := c.bash(ctx, "true"); err != nil {
		c.close()
		s.stop()
		return nil, nil, err
	}
	return s, c, nil
}

// memoryBeside compares what two servers say that their sandboxes use: those of
// crun are no descendants of the server.
func (b *bench) memoryBeside(figure string, one, other *server) error {
	time.Sleep(2 * rest) // until they are idle, and were measured after that
	used := make([]float64, 2)
	for i, s := range []*server{one, other} {
		bytes, err := s.gauge("satchel_sandbox_memory_bytes")
		if err != nil {
			return err
		}
		used[i] = bytes / 1e6
	}
	b.versus(figure, used[0], "MB", "the same in gVisor", used[1])
	return nil
}

// crunCold measures a first command.
func (b *bench) crunCold(ctx context.Context, dir, inCrun string) error {
	var servers []*server
	var clients []*client
	for i, env := range [][]string{{sleepsSoon, inCrun}, {sleepsSoon}} {
		s, c, err := b.serveOne(ctx, fmt.Sprintf("crun-cold-%d", i), env...)
		if err != nil {
			return err
		}
		defer s.stop()
		defer c.close()
		if err := s.importDir(ctx, "ada", dir); err != nil {
			return err
		}
		servers, clients = append(servers, s), append(clients, c)
	}
	var ours, theirs times
	for i := range b.runs(20) + 1 {
		for j, t := range []*times{&ours, &theirs} {
			if err := servers[j].waitAsleep(ctx); err != nil {
				return err
			}
			if err := t.add(func() error { return clients[j].bash(ctx, "true") }); err != nil {
				return err
			}
		}
		if i == 0 {
			ours, theirs = nil, nil // the checkouts are made only once
		}
	}
	b.versus("crun_cold_p50", ours.median(), "ms", "the same in gVisor", theirs.median())
	return nil
}

// pairs measures two things in turn, after two runs that do not count.
func (b *bench) pairs(n int, one, other func() error) (ours, theirs times, err error) {
	for i := range n + 2 {
		if i == 2 {
			ours, theirs = nil, nil
		}
		if err := ours.add(one); err != nil {
			return nil, nil, err
		}
		if err := theirs.add(other); err != nil {
			return nil, nil, err
		}
	}
	return ours, theirs, nil
}
