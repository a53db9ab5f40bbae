package remotetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"satchel/internal/testenv"
)

// Create creates an empty repository with the default branch main, and returns its
// directory.
func (s *Server) Create(name string) string {
	s.t.Helper()
	dir := s.Dir(name)
	// Do not run `git init`, because it copies templates into the repository.
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks"} {
		s.must(os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	s.must(os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	s.must(os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"), 0o644))
	return dir
}

// Dir returns the directory of a repository.
func (s *Server) Dir(name string) string { return filepath.Join(s.dir, name+".git") }

// Remove deletes a repository.
func (s *Server) Remove(name string) {
	s.t.Helper()
	s.must(os.RemoveAll(s.Dir(name)))
}

// Git runs the git program in a repository and returns what it printed,
// without white space around it. A failure fails the test.
func (s *Server) Git(name string, args ...string) string {
	s.t.Helper()
	out, err := s.run(s.Dir(name), nil, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// Head returns the commit of a branch, or "" if there is none.
func (s *Server) Head(name, branch string) string {
	s.t.Helper()
	return s.Git(name, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// Push commits to a branch of a repository, like another person who has fetched its
// newest commit. It writes each file with the given content, or deletes the file if the
// content is [Gone]. It returns the commit.
func (s *Server) Push(name, branch string, files map[string]string) string {
	s.t.Helper()
	old := s.Head(name, branch)
	tree := old
	if old == "" {
		tree = emptyTree
	}
	commit := s.Commit(name, old, tree, files)
	s.Git(name, "update-ref", "refs/heads/"+branch, commit, cmpZero(old))
	return commit
}

// Gone is the content with which Push and Commit delete a file.
const Gone = "\x00gone"

// emptyTree is the object name of a tree without entries.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func cmpZero(id string) string {
	if id == "" {
		return strings.Repeat("0", 40)
	}
	return id
}

// Commit creates a commit in a repository, without a ref. Its tree is that of base (a
// commit, or empty for none) with the files changed as in Push. Its only parent is
// parent. If parent is empty, the commit has no parent.
func (s *Server) Commit(name, parent, base string, files map[string]string) string {
	s.t.Helper()
	index := filepath.Join(s.t.TempDir(), "index")
	env := []string{"GIT_INDEX_FILE=" + index}
	git := func(stdin string, args ...string) string {
		s.t.Helper()
		out, err := s.runIn(s.Dir(name), env, stdin, args...)
		if err != nil {
			s.t.Fatal(err)
		}
		return out
	}
	if base != "" && base != emptyTree {
		git("", "read-tree", base)
	}
	var names []string
	for p := range files {
		names = append(names, p)
	}
	slices.Sort(names)
	var info strings.Builder
	for _, p := range names {
		if files[p] == Gone {
			fmt.Fprintf(&info, "0 %s\t%s\x00", strings.Repeat("0", 40), p)
			continue
		}
		fmt.Fprintf(&info, "100644 %s\t%s\x00", git(files[p], "hash-object", "-w", "--stdin"), p)
	}
	git(info.String(), "update-index", "-z", "--index-info")
	args := []string{"commit-tree", git("", "write-tree"), "-m", "Change " + strings.Join(names, ", ")}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return git("", args...)
}

// File returns a file's content on a branch. ok is false if the file is missing.
func (s *Server) File(name, branch, path string) (content string, ok bool) {
	s.t.Helper()
	cmd := s.command(s.Dir(name), nil, "cat-file", "blob", "refs/heads/"+branch+":"+path)
	out, err := cmd.Output()
	return string(out), err == nil
}

// Files returns the paths on a branch, sorted.
func (s *Server) Files(name, branch string) []string {
	s.t.Helper()
	if s.Head(name, branch) == "" {
		return nil
	}
	out := s.Git(name, "ls-tree", "-r", "-z", "--name-only", "refs/heads/"+branch)
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
}

// Fsck fails the test if git finds a defect in a repository.
func (s *Server) Fsck(name string) {
	s.t.Helper()
	s.Git(name, "fsck", "--full", "--strict", "--no-dangling")
}

func (s *Server) run(dir string, env []string, args ...string) (string, error) {
	return s.runIn(dir, env, "", args...)
}

func (s *Server) runIn(dir string, env []string, stdin string, args ...string) (string, error) {
	cmd := s.command(dir, env, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errOut.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func (s *Server) command(dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.git, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(testenv.GitEnv("GIT_DIR="+dir,
		"GIT_AUTHOR_NAME=Someone Else", "GIT_AUTHOR_EMAIL=else@example.com",
		"GIT_COMMITTER_NAME=Someone Else", "GIT_COMMITTER_EMAIL=else@example.com"),
		configEnv("safe.directory=*", "gc.auto=0", "core.fsync=none"), env)
	return cmd
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
