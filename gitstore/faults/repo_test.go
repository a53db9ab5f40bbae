//go:build unix

package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// repo reads and writes a bare repository with the git program alone, so that
// nothing is judged by the code under test.
type repo struct {
	dir string
	cat *exec.Cmd // git cat-file --batch
	in  io.WriteCloser
	out *bufio.Reader
}

func gitCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-c", "gc.auto=0", "-c", "core.fsync=none", "--git-dir=" + dir}, args...)...)
	cmd.Env = testenv.GitEnv()
	return cmd
}

// git runs git in a repository; the error has what it said.
func git(dir string, args ...string) (string, error) {
	cmd := gitCommand(dir, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func openRepo(dir string) (*repo, error) {
	r := &repo{dir: dir, cat: exec.Command("git", "--git-dir="+dir, "cat-file", "--batch")}
	r.cat.Env = gitCommand(dir).Env
	var err error
	if r.in, err = r.cat.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cat.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	return r, r.cat.Start()
}

func (r *repo) close() error {
	r.in.Close()
	return r.cat.Wait()
}

// object returns an object's name, kind and content; no name where it is
// missing.
func (r *repo) object(name string) (id, kind string, data []byte, err error) {
	if _, err := fmt.Fprintln(r.in, name); err != nil {
		return "", "", nil, err
	}
	head, err := r.out.ReadString('\n')
	if err != nil {
		return "", "", nil, err
	}
	f := strings.Fields(head)
	if len(f) != 3 {
		return "", "", nil, nil
	}
	n, err := strconv.Atoi(f[2])
	if err != nil {
		return "", "", nil, fmt.Errorf("cat-file: %q", head)
	}
	data = make([]byte, n+1)
	_, err = io.ReadFull(r.out, data)
	return f[0], f[1], data[:n], err
}

// tip is the commit of a ref; empty if there is none.
func (r *repo) tip(ref string) (string, error) {
	id, _, _, err := r.object(ref)
	return id, err
}

// view reads all files of a commit.
func (r *repo) view(commit string) (view, error) {
	v := view{}
	return v, r.walk(commit+"^{tree}", "", v)
}

func (r *repo) walk(tree, under string, v view) error {
	_, kind, data, err := r.object(tree)
	if err != nil {
		return err
	}
	if kind != "tree" {
		return fmt.Errorf("%s is a %q, not a tree", tree, kind)
	}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, ok2 := strings.Cut(string(head), " ")
		if !ok || !ok2 || len(rest) < 20 {
			return fmt.Errorf("tree %s is malformed", tree)
		}
		id := fmt.Sprintf("%x", rest[:20])
		data = rest[20:]
		if mode == "40000" {
			if err := r.walk(id, under+name+"/", v); err != nil {
				return err
			}
			continue
		}
		_, _, content, err := r.object(id)
		if err != nil {
			return err
		}
		f := file{content: content, blob: space.BlobID(id)}
		switch mode {
		case "100755":
			f.mode = space.Executable
		case "120000":
			f.mode = space.Symlink
		}
		v[under+name] = f
	}
	return nil
}

var errLocked = errors.New("the branch is locked")

// push makes a commit as a person with plain git does: of what the person saw
// at parent (empty: nothing yet), onto a branch. Unless forced it is refused
// where the branch has moved on: then pushed is false.
func (r *repo) push(branch, parent, op string, changes map[string]*file, force bool) (pushed bool, err error) {
	var b bytes.Buffer
	ref := "refs/heads/" + branch
	data := func(c []byte) { fmt.Fprintf(&b, "data %d\n%s\n", len(c), c) }
	if parent == "" {
		fmt.Fprintf(&b, "commit %s\n", ref)
	} else {
		fmt.Fprintf(&b, "reset %s\nfrom %s\n\ncommit %s\n", ref, parent, ref)
	}
	fmt.Fprintf(&b, "committer Somebody Else <else@example.com> %d +0000\n", time.Now().Unix())
	data([]byte(opMark + op))
	if parent != "" {
		fmt.Fprintf(&b, "from %s\n", parent)
	}
	paths := slices.Sorted(maps.Keys(changes))
	for _, p := range paths {
		if changes[p] == nil {
			fmt.Fprintf(&b, "D %q\n", p)
		}
	}
	for _, p := range paths {
		if f := changes[p]; f != nil {
			mode := map[space.Mode]string{space.Regular: "100644", space.Executable: "100755", space.Symlink: "120000"}[f.mode]
			fmt.Fprintf(&b, "M %s inline %q\n", mode, p)
			data(f.content)
		}
	}
	b.WriteString("done\n")
	args := []string{"fast-import", "--quiet", "--done"}
	if force {
		args = append(args, "--force")
	}
	cmd := gitCommand(r.dir, args...)
	cmd.Stdin = &b
	out, err := cmd.CombinedOutput()
	if err == nil {
		return true, nil
	}
	switch s := string(out); {
	case strings.Contains(s, "Not updating refs/heads"), strings.Contains(s, "but expected"), strings.Contains(s, "already exists"):
		return false, nil // somebody else was faster
	case strings.Contains(s, "Unable to create"):
		return false, errLocked
	}
	return false, fmt.Errorf("fast-import: %w: %s", err, out)
}
