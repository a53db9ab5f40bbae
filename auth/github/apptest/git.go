package apptest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"satchel/internal/testenv"
)

func findBackend() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("apptest: git: %w", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		return "", fmt.Errorf("apptest: git has no http-backend: %w", err)
	}
	return backend, nil
}

// initRepository makes an empty repository, by hand: git init copies templates.
func initRepository(dir string) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("apptest: %w", err)
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = true\n[http]\n\treceivepack = true\n[receive]\n\tautogc = false\n[gc]\n\tauto = 0\n"), 0o644),
	)
}

func gitEnviron() []string {
	return testenv.GitEnv("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
}

func runGit(dir, stdin string, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = slices.Concat(gitEnviron(), []string{"GIT_DIR=" + dir}, env)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("apptest: git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// push makes a commit on main as another person would.
func (s *Server) push(dir string, files map[string]string) (string, error) {
	index, err := os.CreateTemp("", "apptest-index-")
	if err != nil {
		return "", fmt.Errorf("apptest: %w", err)
	}
	index.Close()
	os.Remove(index.Name())
	defer os.Remove(index.Name())
	env := []string{"GIT_INDEX_FILE=" + index.Name()}
	parent, _ := runGit(dir, "", nil, "rev-parse", "--verify", "--quiet", "refs/heads/main")
	commit := []string{"commit-tree", "-m", "change " + strings.Join(slices.Sorted(maps.Keys(files)), ", ")}
	if parent != "" {
		commit = append(commit, "-p", parent)
		if _, err := runGit(dir, "", env, "read-tree", parent); err != nil {
			return "", err
		}
	}
	for path, content := range files {
		blob, err := runGit(dir, content, nil, "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := runGit(dir, "", env, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+path); err != nil {
			return "", err
		}
	}
	tree, err := runGit(dir, "", env, "write-tree")
	if err != nil {
		return "", err
	}
	made, err := runGit(dir, "", nil, append(commit, tree)...)
	if err != nil {
		return "", err
	}
	_, err = runGit(dir, "", nil, "update-ref", "refs/heads/main", made)
	return made, err
}

// Push makes a commit on main of a repository as another person would, tells the
// apps by a webhook, and returns the commit.
func (s *Server) Push(repo string, files map[string]string) (commit string) {
	s.with(func(w *world) {
		r := must(w.repo(repo), repo)
		var err error
		if commit, err = s.push(s.gitDir(r), files); err != nil {
			panic(err)
		}
		s.pushEvent(w, r, commit)
	})
	return commit
}

// Git runs git in a repository, and returns what it printed.
func (s *Server) Git(repo string, args ...string) (string, error) {
	var dir string
	s.with(func(w *world) { dir = s.gitDir(must(w.repo(repo), repo)) })
	return runGit(dir, "", nil, args...)
}

// File is the content of a file on main.
func (s *Server) File(repo, path string) (content string, ok bool) {
	out, err := s.Git(repo, "cat-file", "blob", "refs/heads/main:"+path)
	return out, err == nil
}

// git serves a repository to whom shows a token for it.
func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	if s.misbehave(w, r, r.URL.Path) {
		return
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	pushes := rest == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	_, password, _ := r.BasicAuth()

	s.mu.Lock()
	status, message := http.StatusOK, ""
	repo := s.world.repo(name)
	t := s.world.tokens[password]
	moved := repo == nil && s.world.moved[strings.ToLower(name)] != nil
	if moved {
		repo = s.world.moved[strings.ToLower(name)]
	}
	switch {
	case password == "":
		status, message = http.StatusUnauthorized, "Repository not found."
	case t == nil || !t.expires.After(s.now()):
		status, message = http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations."
	case t.installation == nil || len(t.repos) != 1:
		status, message = http.StatusForbidden, "The stand-in takes installation tokens for one repository alone."
		s.violations = append(s.violations, "git "+name+": a token that is not for one repository alone")
	case t.permissions["contents"] == "" || len(t.permissions) != 2:
		status, message = http.StatusForbidden, "The stand-in takes tokens with contents and metadata alone."
		s.violations = append(s.violations, fmt.Sprintf("git %s: a token with %v", name, t.permissions))
	case t.installation.suspendedBy != nil:
		status, message = http.StatusForbidden, "This installation has been suspended"
	case repo == nil || repo.private && !s.world.reaches(t, repo):
		status, message = http.StatusNotFound, "Repository not found."
	case moved && r.Method == http.MethodGet:
		// What is posted is served under the old name: git posts there where it was
		// asked for its credentials before it was led on.
		status = http.StatusMovedPermanently
	case pushes && (!s.world.reaches(t, repo) || !t.allows("contents", "write")):
		status, message = http.StatusForbidden, "Write access to repository not granted."
	}
	kind := ""
	if t != nil {
		kind = "installation"
	}
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Kind: kind, Status: status})
	var dir, full string
	if repo != nil {
		dir, full = s.gitDir(repo), repo.fullName()
	}
	s.mu.Unlock()

	switch status {
	case http.StatusOK:
		s.backendFor(dir).ServeHTTP(w, forBackend(r, dir, rest))
	case http.StatusMovedPermanently:
		http.Redirect(w, r, s.URL+"/"+full+".git/"+rest+"?"+r.URL.RawQuery, status)
	default:
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		}
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(status)
		fmt.Fprint(w, message)
	}
	if status == http.StatusOK && rest == "git-receive-pack" {
		s.with(func(w *world) {
			if r := w.repo(full); r != nil {
				commit, _ := runGit(dir, "", nil, "rev-parse", "--verify", "--quiet", "refs/heads/main")
				s.pushEvent(w, r, commit)
			}
		})
	}
}

func (s *Server) backendFor(dir string) http.Handler {
	return &cgi.Handler{
		Path: s.backend, Dir: dir,
		Env:        slices.Concat([]string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=app"}, gitEnviron()),
		InheritEnv: []string{"PATH"},
		Logger:     log.New(io.Discard, "", 0),
		Stderr:     io.Discard,
	}
}

func forBackend(r *http.Request, dir, rest string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Path = "/" + filepath.Base(dir) + "/" + rest
	out.Header.Del("Authorization")
	if r.ContentLength != 0 {
		// The backend reads a body of unknown length to its end. Told a length it
		// spins for ever on a body that ends before (git 2.39), and package cgi
		// refuses one that says that it is sent in chunks.
		out.TransferEncoding, out.ContentLength = nil, -1
		out.Header.Del("Content-Length")
	}
	return out
}
