//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/internal/procmem"
)

// pause is the time between two calls. Meanwhile, a model would read the answer, and the sandbox
// starts its next shell.
const pause = 50 * time.Millisecond

// benchBashWarm runs `true` in sandboxes that are up, for five users in turn.
func benchBashWarm(ctx context.Context, b *bench) error {
	s, err := b.serve(ctx, "warm")
	if err != nil {
		return err
	}
	defer s.stop()
	clients, err := s.users(ctx, 5)
	if err != nil {
		return err
	}
	defer closeAll(clients)
	var ours, theirs times
	for i := range b.runs(200) {
		if err := ours.add(func() error { return clients[i%len(clients)].bash(ctx, "true") }); err != nil {
			return err
		}
		time.Sleep(pause)
		if err := theirs.add(func() error { return inDir(ctx, b.dir, "true") }); err != nil {
			return err
		}
	}
	b.versus("bash_warm_p50", ours.median(), "ms", "the same on the host", theirs.median())
	b.versus("bash_warm_p95", ours.p(0.95), "ms", "the same on the host", theirs.p(0.95))
	return nil
}

// benchBashCold measures a first command in a space of 1,000 files, in a sandbox that has
// already booted.
func benchBashCold(ctx context.Context, b *bench) error {
	return benchColdOf(ctx, b, "bash_cold_p50", 1000, 40)
}

// benchBashColdUnspared measures the same as benchBashCold, but a sandbox must boot first.
func benchBashColdUnspared(ctx context.Context, b *bench) error {
	return benchColdOf(ctx, b, "bash_cold_unspared_p50", 1000, 40, noSpare)
}

// benchBashColdLarge measures a first command in a space of 10,000 files. A sandbox must boot
// first.
func benchBashColdLarge(ctx context.Context, b *bench) error {
	return benchColdOf(ctx, b, "bash_cold_10k", b.size(10_000), 10, noSpare)
}

// benchColdOf measures the first command of a user whose sandbox has stopped.
func benchColdOf(ctx context.Context, b *bench, figure string, files, runs int, env ...string) error {
	s, c, err := b.serveOne(ctx, figure, append(env, sleepsSoon)...)
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	dir, err := b.corpusRepository(ctx, figure+"-corpus", files, 2000)
	if err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	var ours, theirs times
	for i := range b.runs(runs) + 1 {
		if err := ours.add(func() error { return c.bash(ctx, "true") }); err != nil {
			return err
		}
		if err := theirs.add(func() error {
			clone := filepath.Join(b.dir, fmt.Sprintf("%s-clone-%d", figure, i))
			if err := runGit(ctx, b.dir, "clone", "-q", "file://"+dir, clone); err != nil {
				return err
			}
			return inDir(ctx, clone, "true")
		}); err != nil {
			return err
		}
		if i == 0 {
			ours, theirs = nil, nil // only the first run also makes the checkout
		}
		if err := s.waitAsleep(ctx); err != nil {
			return err
		}
		if len(env) == 0 {
			if err := s.waitSpare(ctx); err != nil {
				return err
			}
		}
	}
	b.versus(figure, ours.median(), "ms", "git clone of the space and bash on the host", theirs.median())
	return nil
}

// sleepsSoon is the environment of a server whose sandboxes stop soon after a command.
const sleepsSoon = "SATCHEL_SANDBOX_IDLE_STOP=200ms"

// noSpare is the environment of a server that keeps no booted sandbox.
const noSpare = "SATCHEL_SANDBOX_SPARE=0"

// waitSpare waits until the spare sandbox is up. No user may have a sandbox meanwhile, because
// waitSpare cannot tell the two apart.
func (s *server) waitSpare(ctx context.Context) error {
	for !slices.ContainsFunc(procmem.Descendants(s.cmd.Process.Pid), func(pid int) bool {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && strings.HasPrefix(string(args), "runsc-sandbox\x00")
	}) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	time.Sleep(time.Second) // wait until the sandbox has booted
	return nil
}

// waitAsleep waits until no sandbox is up.
func (s *server) waitAsleep(ctx context.Context) error {
	return s.waitGauge(ctx, "satchel_sandboxes", 0)
}

// rareWord is in few pages of a corpus.
const rareWord = "banufa"

// benchGrep searches 1,000 Markdown files, 10 MB, in a sandbox and on the host.
func benchGrep(ctx context.Context, b *bench) error {
	dir, err := b.corpusRepository(ctx, "corpus", b.size(1000), 10_000)
	if err != nil {
		return err
	}
	s, c, err := b.serveOne(ctx, "grep")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	const command = "grep -rn " + rareWord + " knowledge || true"
	var ours, host times
	for i := range b.runs(60) + 2 {
		if i == 2 {
			ours, host = nil, nil // the first two runs only warm the caches
		}
		if err := ours.add(func() error { return c.bash(ctx, command) }); err != nil {
			return err
		}
		if err := host.add(func() error { return inDir(ctx, dir, command) }); err != nil {
			return err
		}
	}
	b.versus("bash_grep_p50", ours.median(), "ms", "the same on the host", host.median())
	return nil
}

// inDir runs a command on the host.
func inDir(ctx context.Context, dir, command string) error {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir = filepath.Clean(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}
