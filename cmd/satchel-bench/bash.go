//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// benchBashWarm runs `true` in sandboxes that are up, for five users in turn.
func benchBashWarm(ctx context.Context, b *bench) error {
	s, err := b.serve(ctx, "warm")
	if err != nil {
		return err
	}
	defer s.stop()
	clients := make([]*client, 5)
	for i := range clients {
		if clients[i], err = s.user(ctx, fmt.Sprintf("user%d", i)); err != nil {
			return err
		}
		defer clients[i].close()
		for range 3 {
			if _, err := clients[i].call(ctx, "bash", map[string]any{"command": "true"}); err != nil {
				return err
			}
		}
	}
	r, err := b.newRunsc("warm-runsc", "/usr/bin/sleep", "3600")
	if err != nil {
		return err
	}
	if err := r.do(ctx, "run", "--detach", "--bundle", r.bundle, "warm"); err != nil {
		return err
	}
	defer func() { _ = r.do(context.WithoutCancel(ctx), "delete", "--force", "warm") }()

	var ours, theirs times
	for i := range b.runs(200) {
		if err := ours.add(func() error {
			_, err := clients[i%len(clients)].call(ctx, "bash", map[string]any{"command": "true"})
			return err
		}); err != nil {
			return err
		}
		// A person's pace: it also lets a pre-started shell be replaced.
		time.Sleep(50 * time.Millisecond)
		if i%4 == 0 {
			if err := theirs.add(func() error { return r.do(ctx, "exec", "warm", "/usr/bin/bash", "-c", "true") }); err != nil {
				return err
			}
		}
	}
	b.versus("bash_warm_p50", ours.median(), "ms", "runsc exec", theirs.median())
	return nil
}

// benchBashCold runs the first command of a user whose sandbox sleeps, in a
// space of 1,000 files.
func benchBashCold(ctx context.Context, b *bench) error {
	s, c, err := b.serveOne(ctx, "cold", "SATCHEL_SANDBOX_IDLE_STOP=200ms")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	dir := filepath.Join(b.dir, "cold-corpus")
	if err := makeCorpus(dir, 1000, 2000); err != nil {
		return err
	}
	if err := commitAll(ctx, dir, true); err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	r, err := b.newRunsc("cold-runsc", "/usr/bin/bash", "-c", "true")
	if err != nil {
		return err
	}
	var ours, theirs times
	for i := range b.runs(40) + 1 {
		if err := ours.add(func() error {
			_, err := c.call(ctx, "bash", map[string]any{"command": "true"})
			return err
		}); err != nil {
			return err
		}
		if err := theirs.add(func() error {
			clone := filepath.Join(b.dir, fmt.Sprintf("clone-%d", i))
			if out, err := exec.CommandContext(ctx, "git", "clone", "-q", "file://"+dir, clone).CombinedOutput(); err != nil {
				return fmt.Errorf("git clone: %w: %s", err, out)
			}
			return r.do(ctx, "run", "--bundle", r.bundle, fmt.Sprintf("cold%d", i))
		}); err != nil {
			return err
		}
		if i == 0 {
			ours, theirs = nil, nil // the checkout is made only once
		}
		if err := s.waitGauge(ctx, "satchel_sandboxes", 0); err != nil {
			return err
		}
	}
	b.versus("bash_cold_p50", ours.median(), "ms", "git clone of the space and a fresh runsc run", theirs.median())
	return nil
}
