package gvisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/agent"
	"satchel/sandbox/sandboxtest"
)

func testBoot() agent.Boot {
	return agent.Boot{
		Disk: 64 << 20, Inodes: 10_000, Tmp: 16 << 20, Output: 1 << 20,
		Processes: 64, OpenFiles: 256, FileSize: 32 << 20,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"},
	}
}

// connect boots a sandbox with the agent in it.
func connect(t testing.TB, seed *space.Checkout) *agent.Client {
	t.Helper()
	s := start(t, newRuntime(t, withAgent), space.SandboxSpec{Checkout: seed, Limits: space.Limits{Memory: 1 << 30, Processes: 64}})
	c, err := agent.Connect(testenv.Context(t), s.Conn(), testBoot())
	if err != nil {
		t.Fatalf("the agent does not answer: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func execute(t testing.TB, c *agent.Client, command string, readOnly bool) agent.ExecResult {
	t.Helper()
	r, err := c.Exec(t.Context(), agent.ExecRequest{Command: command, ReadOnly: readOnly, HeadTail: 64 << 10}, nil)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

// gitSeed makes a seed whose git view has one commit of the checkout's files.
func gitSeed(t testing.TB) *space.Checkout {
	t.Helper()
	seed := sandboxtest.NewCheckout(t)
	if err := os.RemoveAll(seed.GitView); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		cmd := testenv.Git(t, "", append([]string{"--git-dir=" + seed.GitView, "--work-tree=" + seed.Dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q", "-b", "main")
	run("config", "core.bare", "false")
	run("config", "--unset", "core.worktree")
	run("add", "-A")
	run("commit", "-q", "-m", "first light")
	return seed
}

func TestAgentRunsCommands(t *testing.T) {
	t.Parallel()
	c := connect(t, gitSeed(t))
	for _, x := range []struct{ command, want string }{
		{"echo hi", "hi"},
		{"id -u; id -un", "1000\nsatchel"},
		{"pwd; ls", "/space\nnote.md"},
		{"cat note.md", "a note"},
		{"git log --oneline --format=%s", "first light"},
		{"git status --porcelain", ""},
		{"echo more >> note.md && echo new > new.md && git status --porcelain", "M note.md\n?? new.md"},
		{"cat /library/page.md", "a page"},
		{"ls -A /space/.git/HEAD", "/space/.git/HEAD"},
		{"hostname", "satchel"},
	} {
		r := execute(t, c, x.command, false)
		if got := strings.TrimSpace(string(r.Stdout.Head)); got != x.want || r.ExitCode != 0 {
			t.Errorf("%s: exit %d, %q, want %q; stderr %q", x.command, r.ExitCode, got, x.want, r.Stderr.Head)
		}
	}
	b, err := c.Collect(t.Context(), agent.CollectLimits{Entries: 100, FileSize: 1 << 20, Total: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, e := range b.Entries {
		if !e.Dir {
			changed = append(changed, e.Path)
		}
	}
	if strings.Join(changed, " ") != "new.md note.md" && strings.Join(changed, " ") != "note.md new.md" {
		t.Errorf("changed: %q", changed)
	}
}

func TestAgentReadOnlyCommandsChangeNothing(t *testing.T) {
	t.Parallel()
	seed := sandboxtest.NewCheckout(t)
	c := connect(t, seed)
	for _, command := range []string{"echo x > new.md", "echo x >> note.md", "rm note.md", "mount -o remount,rw /space"} {
		if r := execute(t, c, command, true); r.ExitCode == 0 {
			t.Errorf("%s: succeeded", command)
		}
	}
	if r := execute(t, c, "cat note.md; id -u", true); string(r.Stdout.Head) != "a note\n1001\n" {
		t.Errorf("got %q", r.Stdout.Head)
	}
}

// What was checked out belongs to commands, whoever the server runs as: they
// change its modes and times as on a disk of their own.
func TestAgentOwnsWhatWasCheckedOut(t *testing.T) {
	t.Parallel()
	seed := sandboxtest.NewCheckout(t)
	if os.Geteuid() == 0 {
		// As the seeder does, which can as root alone.
		if err := os.Chown(filepath.Join(seed.Dir, "note.md"), agent.CommandUID, agent.CommandUID); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, seed)
	for _, command := range []string{
		"touch -d 2020-02-02 note.md && ls -l --time-style=+%F note.md | grep -q 2020-02-02",
		"cp -p note.md copy.md && ls -l --time-style=+%F copy.md | grep -q 2020-02-02",
		"chmod 700 note.md && ./note.md; [ -x note.md ]",
		"mv note.md moved.md && chmod 600 moved.md && rm moved.md",
	} {
		if r := execute(t, c, command, false); r.ExitCode != 0 {
			t.Errorf("%s: exit %d, %s%s", command, r.ExitCode, r.Stdout.Head, r.Stderr.Head)
		}
	}
}

// Commands have none of what the agent has.
func TestAttackCommandReachesForTheAgent(t *testing.T) {
	t.Parallel()
	c := connect(t, sandboxtest.NewCheckout(t))
	for _, command := range []string{
		"kill -9 1", "echo x > /proc/1/fd/1", "cat /proc/1/environ", "ls /.satchel", "cat /.satchel/lower/note.md",
		"unshare -Urm true", "mount -t tmpfs none /tmp", "umount /space", "/.satchel/agent agent", "chmod 777 /.satchel", "touch /etc/x /.satchel/x", "dmesg -c", "chroot / true",
	} {
		if r := execute(t, c, command, false); r.ExitCode == 0 && len(r.Stdout.Head) > 0 {
			t.Errorf("%s: exit 0, %q", command, r.Stdout.Head)
		} else if r.ExitCode == 0 && !strings.HasPrefix(command, "cat") && !strings.HasPrefix(command, "dmesg") {
			t.Errorf("%s: succeeded", command)
		}
	}
	r := execute(t, c, "grep -E 'Cap(Eff|Prm|Bnd|Amb)|NoNewPrivs' /proc/self/status", false)
	want := "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
	if got := string(r.Stdout.Head); !strings.Contains(got, want) || !strings.Contains(got, "NoNewPrivs:\t1") {
		t.Errorf("a command has %q", got)
	}
}
