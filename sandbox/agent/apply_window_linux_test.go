package agent

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// hostSpace is a spaceView over a directory of the host, with a command that
// runs in it: the places between two steps of an application can be met in it.
// The directory is its own upper layer, and its checkout is empty.
type hostSpace struct {
	*spaceView
	t       *testing.T
	dir     string
	in      io.Writer
	out     *bufio.Reader
	command *exec.Cmd
}

func newHostSpace(t *testing.T) *hostSpace {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.SkipOrFail(t, "acting as another user takes root")
	}
	top, err := os.MkdirTemp("", "agent-space-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	must(t, os.Chmod(top, 0o755))
	h := &hostSpace{t: t, dir: filepath.Join(top, "space")}
	open := func(name string) int {
		p := filepath.Join(top, name)
		must(t, os.Mkdir(p, 0o755))
		must(t, os.Chown(p, protocol.CommandUID, protocol.CommandUID))
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	marks := map[uint32]bool{firstMark: true}
	v := &spaceView{
		pool: &pool{marks: marks}, lower: open("lower"), space: open("space"),
		acked: make(map[string]stamp), batches: make(map[uint64]map[string]*stamp),
		findUse: func() liveUse { return findUse(marks, h.dir) },
	}
	v.upper = v.space
	v.watch, err = newWriteWatch()
	must(t, err)
	t.Cleanup(func() { unix.Close(v.watch.fd) })
	v.user, err = newUserThread()
	must(t, err)
	t.Cleanup(func() { close(v.user.work) })
	h.spaceView = v

	h.command = exec.Command("bash")
	h.command.Dir = h.dir
	h.command.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent"}
	h.command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: protocol.CommandUID, Gid: protocol.CommandUID, Groups: []uint32{firstMark}}}
	h.command.Stderr = h.command.Stdout
	stdin, err := h.command.StdinPipe()
	must(t, err)
	stdout, err := h.command.StdoutPipe()
	must(t, err)
	h.in, h.out = stdin, bufio.NewReader(stdout)
	must(t, h.command.Start())
	t.Cleanup(func() {
		stdin.Close()
		h.command.Wait()
	})
	return h
}

// sh has the running command do something, and waits until it has.
func (h *hostSpace) sh(command string) {
	h.t.Helper()
	fmt.Fprintf(h.in, "%s\necho done $?\n", command)
	if line, err := h.out.ReadString('\n'); line != "done 0\n" {
		h.t.Fatalf("%s: %q %v", command, line, err)
	}
}

// collected returns the entries of a collection, and acknowledges it.
func (h *hostSpace) collected() string {
	h.t.Helper()
	b := h.batch(protocol.CollectLimits{})
	must(h.t, h.ack(protocol.AckRequest{Batch: b.ID}))
	return conflictName.ReplaceAllString(brief(byPath(b)), space.ConflictMark+"N")
}

func (h *hostSpace) batch(l protocol.CollectLimits) protocol.Batch {
	h.t.Helper()
	if l.Entries == 0 {
		l.Entries = protocol.DefaultEntries
	}
	l.FileSize, l.Total = protocol.DefaultFileSize, protocol.DefaultTotal
	var b protocol.Batch
	var err error
	b.ID, b.More, err = h.collect(l, func(n protocol.Entry) { b.Entries = append(b.Entries, n) })
	must(h.t, err)
	return b
}

var conflictName = regexp.MustCompile(regexp.QuoteMeta(space.ConflictMark) + "[0-9a-f]{10}")

// files lists the space: every file with its content.
func (h *hostSpace) files() string {
	h.t.Helper()
	var w strings.Builder
	must(h.t, filepath.WalkDir(h.dir, func(p string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(h.dir, p)
		switch {
		case err != nil:
			return err
		case d.Type()&os.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			fmt.Fprintf(&w, "%s -> %s; ", name, target)
		case d.Type().IsRegular():
			b, err := os.ReadFile(p)
			must(h.t, err)
			fmt.Fprintf(&w, "%s=%s; ", name, strings.ReplaceAll(string(b), "\n", "|"))
		}
		return nil
	}))
	return conflictName.ReplaceAllString(strings.TrimSpace(w.String()), space.ConflictMark+"N")
}

// A command opens, changes, replaces or removes a file between two steps of an application.
// Whatever it writes is in the space afterwards, and is reported.
func TestApplyLosesNothingBetweenItsSteps(t *testing.T) {
	const (
		holdOpen = "exec 3>>f"      // and writes when all is over
		late     = "echo late >&3"  // into what it had opened
		mapped   = "exec 3<>f"      // as a mapping has been opened
		append_  = "echo mine >> f" // opened and closed
	)
	link := protocol.ApplyEntry{Path: "f", Content: []byte("target"), Mode: space.Symlink}
	type steps struct{ swap, swapped, settle, back string }
	for _, c := range []struct {
		name     string
		before   string // what the space has, and the host knows
		entry    protocol.ApplyEntry
		at       steps
		after    string
		answer   string
		files    string
		reported string
	}{
		{name: "nothing happens", entry: put("f", "new"), answer: "f\n", files: "f=new;"},
		{name: "nothing happens to a new file", entry: put("g", "new"), answer: "g\n", files: "f=old|; g=new;"},
		{name: "nothing happens to a deleted file", entry: del("f"), answer: "f\n"},
		{name: "nothing happens to a link", before: "ln -sf x f", entry: put("f", "new"), answer: "f\n", files: "f=new;"},
		{name: "nothing happens to what becomes a link", entry: link, answer: "f\n", files: "f -> target;"},

		{name: "opened for writing", entry: put("f", "new"), at: steps{swap: holdOpen}, after: late, answer: "f dirty\n", files: "f=old|late|;", reported: "\"f\"=old\nlate\n\n"},
		{name: "opened for both", entry: put("f", "new"), at: steps{swap: mapped}, after: late, answer: "f dirty\n", files: "f=late|;", reported: "\"f\"=late\n\n"},
		{name: "opened for writing where it is deleted", entry: del("f"), at: steps{swap: holdOpen}, after: late, answer: "f dirty\n", files: "f=old|late|;", reported: "\"f\"=old\nlate\n\n"},
		{name: "opened for writing where it becomes a link", entry: link, at: steps{swap: holdOpen}, after: late, answer: "f dirty\n", files: "f=old|late|;", reported: "\"f\"=old\nlate\n\n"},
		{name: "changed", entry: put("f", "new"), at: steps{swap: append_}, answer: "f dirty\n", files: "f=old|mine|;", reported: "\"f\"=old\nmine\n\n"},
		{name: "changed where it is deleted", entry: del("f"), at: steps{swap: append_}, answer: "f dirty\n", files: "f=old|mine|;", reported: "\"f\"=old\nmine\n\n"},
		{name: "changed without a trace in size and time", entry: put("f", "new"), at: steps{swap: "t=$(stat -c %y f); printf mine 1<>f; touch -d \"$t\" f"}, before: "printf abcd > f", answer: "f dirty\n", files: "f=mine;", reported: "\"f\"=mine\n"},
		{name: "replaced", entry: put("f", "new"), at: steps{swap: "echo mine > n; mv n f"}, answer: "f dirty\n", files: "f=mine|;", reported: "\"f\"=mine\n\n"},
		{name: "replaced where it is deleted", entry: del("f"), at: steps{swap: "echo mine > n; mv n f"}, answer: "f dirty\n", files: "f=mine|;", reported: "\"f\"=mine\n\n"},
		{name: "replaced by a link", entry: put("f", "new"), at: steps{swap: "ln -sf mine f"}, answer: "f dirty\n", files: "f -> mine;", reported: "\"f\" link=mine\n"},
		{name: "replaced by a directory", entry: put("f", "new"), at: steps{swap: "rm f; mkdir f; echo mine > f/x"}, answer: "f dirty\n", files: "f/x=mine|;", reported: "\"f\" dir\n\"f/x\"=mine\n\n"},
		{name: "removed", entry: put("f", "new"), at: steps{swap: "rm f"}, answer: "f dirty\n", reported: "\"f\" deleted\n"},
		{name: "removed where it is deleted", entry: del("f"), at: steps{swap: "rm f"}, answer: "f\n", reported: "\"f\" deleted\n"},
		{name: "made", before: "rm f", entry: put("f", "new"), at: steps{swap: "echo mine > f"}, answer: "f dirty\n", files: "f=mine|;", reported: "\"f\"=mine\n\n"},
		{name: "made executable", entry: put("f", "new"), at: steps{swap: "chmod +x f"}, answer: "f dirty\n", files: "f=old|;", reported: "\"f\" x=old\n\n"},

		{name: "the new file is removed at once", entry: put("f", "new\n"), at: steps{swapped: "rm f"}, answer: "f\n", reported: "\"f\" deleted\n"},
		{name: "the new file is replaced at once", entry: put("f", "new\n"), at: steps{swapped: "echo mine > n; mv n f"}, answer: "f\n", files: "f=mine|;", reported: "\"f\"=mine\n\n"},
		{name: "the new file is changed at once", entry: put("f", "new\n"), at: steps{swapped: append_}, answer: "f dirty\n",
			files: "f=old|; f.conflict-N=new|mine|;", reported: "\"f\"=old\n\n\"f.conflict-N\"=new\nmine\n\n"},
		{name: "the made file is removed at once", before: "rm f", entry: put("f", "new\n"), at: steps{swapped: "rm f"}, answer: "f\n", reported: "\"f\" deleted\n"},
		{name: "the new file is changed", entry: put("f", "new\n"), at: steps{settle: append_}, answer: "f\n", files: "f=new|mine|;", reported: "\"f\"=new\nmine\n\n"},
		{name: "the new file is opened for writing", entry: put("f", "new\n"), at: steps{settle: holdOpen}, after: late, answer: "f\n", files: "f=new|late|;", reported: "\"f\"=new\nlate\n\n"},
		{name: "the new file is replaced", entry: put("f", "new\n"), at: steps{settle: "echo mine > n; mv n f"}, answer: "f\n", files: "f=mine|;", reported: "\"f\"=mine\n\n"},
		{name: "the new file is removed", entry: put("f", "new\n"), at: steps{settle: "rm f"}, answer: "f\n", reported: "\"f\" deleted\n"},
		{name: "the deleted file is made again", entry: del("f"), at: steps{settle: "echo mine > f"}, answer: "f\n", files: "f=mine|;", reported: "\"f\"=mine\n\n"},

		{name: "both are changed", entry: put("f.txt", "new\n"), before: "mv f f.txt", at: steps{swap: "exec 3>>f.txt", back: "echo mine >> f.txt"}, after: late, answer: "f.txt dirty\n",
			files: "f.conflict-N.txt=new|mine|; f.txt=old|late|;", reported: "\"f.conflict-N.txt\"=new\nmine\n\n\"f.txt\"=old\nlate\n\n"},
		{name: "the old is changed and the new opened", entry: put("f", "new\n"), at: steps{swap: append_, back: holdOpen}, after: late, answer: "f dirty\n",
			files: "f=old|mine|; f.conflict-N=new|late|;", reported: "\"f\"=old\nmine\n\n\"f.conflict-N\"=new\nlate\n\n"},
		{name: "the old is opened and the new replaced", entry: put("f", "new\n"), at: steps{swap: holdOpen, back: "echo mine > n; mv n f"}, after: late, answer: "f dirty\n",
			files: "f=old|late|; f.conflict-N=mine|;", reported: "\"f\"=old\nlate\n\n\"f.conflict-N\"=mine\n\n"},
		{name: "the old is opened and the new removed", entry: put("f", "new\n"), at: steps{swap: holdOpen, back: "rm f"}, after: late, answer: "f dirty\n", files: "f=old|late|;", reported: "\"f\"=old\nlate\n\n"},
		{name: "the deleted is opened and made again", entry: del("f"), at: steps{swap: holdOpen, back: "echo mine > f"}, after: late, answer: "f dirty\n",
			files: "f=mine|; f.conflict-N=old|late|;", reported: "\"f\"=mine\n\n\"f.conflict-N\"=old\nlate\n\n"},
		{name: "a file in a directory's place is opened", entry: put("f/x", "new\n"), at: steps{swap: holdOpen}, after: late, answer: "f/x dirty\n",
			files: "f/x=new|; f.conflict-N=old|late|;", reported: "\"f\" dir\n\"f.conflict-N\"=old\nlate\n\n"},
		{name: "the private names are taken", before: "for i in 0 1 2; do echo $i > .satchel-apply-$i; done", entry: put("f", "new"), at: steps{swap: append_}, answer: "f dirty\n",
			files: ".satchel-apply-0=0|; .satchel-apply-1=1|; .satchel-apply-2=2|; f=old|mine|;", reported: "\"f\"=old\nmine\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostSpace(t)
			h.sh("umask 022; echo old > f; " + c.before)
			h.collected()
			at := func(command *string) func(string) {
				return func(string) {
					if now := *command; now != "" {
						*command = "" // once
						h.sh(now)
					}
				}
			}
			h.hooks = viewHooks{at(&c.at.swap), at(&c.at.swapped), at(&c.at.settle), at(&c.at.back), nil}
			var answer strings.Builder
			for _, r := range h.apply([]protocol.ApplyEntry{c.entry}) {
				answer.WriteString(r.Path)
				if r.Dirty {
					answer.WriteString(" dirty")
				}
				answer.WriteString(strings.TrimSpace(" "+r.Problem) + "\n")
			}
			h.sh(c.after + "\nexec 3>&-")
			if c.at != (steps{}) {
				t.Errorf("not reached: %+v", c.at)
			}
			if answer.String() != c.answer {
				t.Errorf("answer %q, want %q", answer.String(), c.answer)
			}
			if got := h.files(); got != c.files {
				t.Errorf("the space has\n%s\nwant\n%s", got, c.files)
			}
			if got := h.collected(); got != c.reported {
				t.Errorf("told:\n%swant:\n%s", got, c.reported)
			}
			if got := h.collected(); got != "" {
				t.Errorf("told again:\n%s", got)
			}
		})
	}
}
