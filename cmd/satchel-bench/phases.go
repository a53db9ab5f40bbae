//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"satchel/internal/space"
)

// benchPhases reports where the time of a command goes that writes a file after
// somebody else has committed one, and that of a start.
func benchPhases(ctx context.Context, b *bench) (err error) {
	p, err := b.openParts(ctx, "phases", b.size(1000))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, _, err := p.run(ctx, "true"); err != nil {
		return err
	}
	var whole, idle times
	phases := map[string]*times{}
	add := func(name string, d time.Duration) {
		if phases[name] == nil {
			phases[name] = &times{}
		}
		*phases[name] = append(*phases[name], d)
	}
	for range b.runs(100) {
		path, content := p.newFile()
		cs := space.ChangeSet{Changes: []space.Change{{Path: path, Content: []byte(content)}}}
		if _, err := p.store.Commit(ctx, p.id, cs, space.Meta{Author: author}); err != nil {
			return err
		}
		time.Sleep(pause)
		path, content = p.newFile()
		began, at, err := p.run(ctx, fmt.Sprintf("mkdir -p notes && printf %%s '%s' > %s", content, path))
		if err != nil {
			return err
		}
		end := time.Now()
		whole = append(whole, end.Sub(began))
		add("queue", at[applying].Sub(began))
		add("apply", at[executing].Sub(at[applying]))
		add("exec", at[executed].Sub(at[executing]))
		add("collect", at[committing].Sub(at[executed]))
		add("commit", at[committed].Sub(at[committing]))
		add("finish", end.Sub(at[committed]))
		time.Sleep(pause)
		if err := idle.add(func() error { _, _, err := p.run(ctx, "true"); return err }); err != nil {
			return err
		}
	}
	b.alone("bash_pool_true_p50", idle.median(), "ms")
	b.alone("bash_pool_write_p50", whole.median(), "ms")
	for _, name := range []string{"queue", "apply", "exec", "collect", "commit", "finish"} {
		b.alone("bash_phase_"+name, phases[name].median(), "ms")
	}
	return benchStart(ctx, b, p)
}

// benchStart measures the parts of a start, and how long the agent takes from its
// first instruction until it is ready. It also measures what the program does before
// main, on the host.
func benchStart(ctx context.Context, b *bench, p *parts) error {
	var seed, boot, agent, first, program times
	for range b.runs(40) {
		if err := p.pool.StopUser(ctx, owner); err != nil {
			return err
		}
		_, at, err := p.run(ctx, "true")
		if err != nil {
			return err
		}
		seed = append(seed, at[booting].Sub(at[seeding]))
		boot = append(boot, at[connecting].Sub(at[booting]))
		agent = append(agent, at[connected].Sub(at[connecting]))
		first = append(first, at[executed].Sub(at[executing]))
		if err := program.add(func() error { return exec.CommandContext(ctx, b.binary, "agent").Run() }); err != nil {
			return err
		}
	}
	b.alone("cold_phase_seed", seed.median(), "ms")
	b.alone("cold_phase_boot", boot.median(), "ms")
	b.alone("cold_phase_first", first.median(), "ms")
	b.alone("agent_start", agent.median(), "ms")
	b.alone("agent_start_host", program.median(), "ms")
	return nil
}

// benchCapture measures what it takes to find what a command changed and to
// commit it, beside git over the same files on the host.
func benchCapture(ctx context.Context, b *bench) (err error) {
	p, err := b.openParts(ctx, "capture", 100)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, c := range []struct {
		figure string
		files  int
		runs   int
	}{{"capture_1", 1, 60}, {"capture_1k", 1000, 20}, {"capture_20k", b.size(20_000), 3}} {
		dir, err := b.corpusRepository(ctx, c.figure, 100, 2000)
		if err != nil {
			return err
		}
		var ours, part, theirs times
		for i := range b.runs(c.runs) {
			change := fmt.Sprintf("rm -rf many; mkdir many; cd many; seq -f '%d %%g' %d | split -l 1 -a 5", i, c.files)
			_, at, err := p.run(ctx, change)
			if err != nil {
				return err
			}
			var took time.Duration
			for _, s := range p.saved { // nothing runs any more
				took += s.took
			}
			ours = append(ours, took)
			part = append(part, at[committed].Sub(at[committing]))
			if err := inDir(ctx, dir, change); err != nil {
				return err
			}
			if err := theirs.add(func() error { return commitAll(ctx, dir, false) }); err != nil {
				return err
			}
		}
		b.versus(c.figure, ours.median(), "ms", "git add -A && git commit on the host", theirs.median())
		b.alone(c.figure+"_commit", part.median(), "ms")
	}
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
