//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"satchel/gitstore"
	"satchel/internal/space"
)

// core measures the main job.
func core(ctx context.Context, b *bench) error {
	for _, step := range []struct {
		name string
		run  func(context.Context, *bench) error
	}{
		{"idle memory", idleMemory},
		{"read", benchRead},
		{"bash, warm", benchBashWarm},
		{"bash, cold", benchBashCold},
		{"commit", benchCommit},
		{"search", benchSearch},
	} {
		b.log("measuring %s", step.name)
		if err := step.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

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

// benchRead reads one file, beside an mcp-go server that answers a text of the
// same size.
func benchRead(ctx context.Context, b *bench) error {
	s, err := b.serve(ctx, "read")
	if err != nil {
		return err
	}
	defer s.stop()
	c, err := s.user(ctx, "ada")
	if err != nil {
		return err
	}
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
			ours, theirs = nil, nil // warm by now
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
	s, err := b.serve(ctx, "cold", "SATCHEL_SANDBOX_IDLE_STOP=200ms")
	if err != nil {
		return err
	}
	defer s.stop()
	c, err := s.user(ctx, "ada")
	if err != nil {
		return err
	}
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

func commitAll(ctx context.Context, dir string, fresh bool) error {
	steps := [][]string{{"add", "-A"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "x"}}
	if fresh {
		steps = append([][]string{{"init", "-q", "-b", "main"}}, steps...)
	}
	for _, args := range steps {
		if out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return nil
}

// benchCommit commits one changed file of 10,000, durably.
func benchCommit(ctx context.Context, b *bench) error {
	files := 10_000
	if b.quick {
		files = 1000
	}
	dir := filepath.Join(b.dir, "commit-corpus")
	if err := makeCorpus(dir, files, 2000); err != nil {
		return err
	}
	if err := commitAll(ctx, dir, true); err != nil {
		return err
	}
	fsyncs := 0
	for _, slow := range []time.Duration{0, 2 * time.Millisecond} {
		store, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(b.dir, "commit-store", slow.String()), Sync: func(f *os.File) error {
			fsyncs++
			time.Sleep(slow) // stands for a disk whose fsync costs something
			return f.Sync()
		}})
		if err != nil {
			return err
		}
		defer store.Close()
		id := space.NewSpaceID()
		var tree space.ChangeSet
		w := newWords(1)
		for i := range files {
			tree.Changes = append(tree.Changes, space.Change{Path: fmt.Sprintf("knowledge/s%02d/page-%05d.md", i%50, i), Content: []byte(w.page(i, 2000))})
		}
		if _, err := store.Create(ctx, id, tree, space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}}); err != nil {
			return err
		}
		fsyncs = 0
		var ours, theirs times
		n := b.runs(100)
		for i := range n {
			path := fmt.Sprintf("knowledge/s%02d/page-%05d.md", i%50, i)
			content := []byte(w.page(i, 2000))
			head, err := store.Head(ctx, id)
			if err != nil {
				return err
			}
			base, mode, _, err := store.Blob(ctx, id, head, space.Path(path))
			if err != nil {
				return err
			}
			cs := space.ChangeSet{Changes: []space.Change{{Path: path, Content: content, Base: base, BaseMode: mode}}}
			if err := ours.add(func() error {
				_, err := store.Commit(ctx, id, cs, space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}, Message: "x"})
				return err
			}); err != nil {
				return err
			}
			if slow > 0 {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, path), content, 0o644); err != nil {
				return err
			}
			if err := theirs.add(func() error { return commitAll(ctx, dir, false) }); err != nil {
				return err
			}
		}
		if slow == 0 {
			b.versus("commit_p50", ours.median(), "ms", "git add -A && git commit", theirs.median())
			b.alone("commit_fsyncs", float64(fsyncs)/float64(n), "fsyncs")
		} else {
			b.alone("commit_slow_disk_p50", ours.median(), "ms")
		}
	}
	return nil
}

// benchSearch searches 10,000 pages with queries of 1, 3 and 10 words, beside
// ripgrep over the same tree.
func benchSearch(ctx context.Context, b *bench) error {
	pages := 10_000
	if b.quick {
		pages = 1000
	}
	s, err := b.serve(ctx, "search")
	if err != nil {
		return err
	}
	defer s.stop()
	c, err := s.user(ctx, "ada")
	if err != nil {
		return err
	}
	defer c.close()
	dir := filepath.Join(b.dir, "search-corpus")
	if err := makeCorpus(dir, pages, 5000); err != nil {
		return err
	}
	const marker = "zyzzyvamarker"
	if err := os.WriteFile(filepath.Join(dir, "knowledge", "marker.md"), []byte("# "+marker+"\n"), 0o644); err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	for {
		text, err := c.call(ctx, "search", map[string]any{"query": marker})
		if err != nil {
			return err
		}
		if strings.Contains(text, "marker.md") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w := newWords(7)
	var ours, theirs times
	for i := range b.runs(300) {
		n := []int{1, 3, 10}[i%3]
		query := make([]string, n)
		for j := range query {
			query[j] = w.word()
		}
		if err := ours.add(func() error {
			_, err := c.call(ctx, "search", map[string]any{"query": strings.Join(query, " ")})
			return err
		}); err != nil {
			return err
		}
		if i%5 > 0 { // ripgrep takes long; every fifth query, of all lengths, is enough
			continue
		}
		args := []string{"--ignore-case", "--count-matches"}
		for _, q := range query {
			args = append(args, "-e", q)
		}
		if err := theirs.add(func() error {
			out, err := exec.CommandContext(ctx, "rg", append(args, dir)...).Output()
			if err != nil && len(out) == 0 && exitCode(err) != 1 { // 1: no match
				return err
			}
			return nil
		}); err != nil {
			return err
		}
	}
	b.versus("search_p50", ours.median(), "ms", "ripgrep over the same tree", theirs.median())
	b.versus("search_p95", ours.p(0.95), "ms", "ripgrep over the same tree", theirs.p(0.95))
	return nil
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}
