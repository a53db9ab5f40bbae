package apptest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// initRepository creates an empty repository without the templates of git init.
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

func runGit(dir, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(gitEnviron(), "GIT_DIR="+dir)
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

// Push creates a commit on main of a repository, as another person would, and returns the
// commit.
func (s *Server) Push(repo string, files map[string]string) (commit string) {
	s.with(func(w *world) {
		r := must(w.repo(repo), repo)
		dir, in := s.gitDir(r), fmt.Sprintf("commit refs/heads/main\ncommitter A Person <person@example.com> %d +0000\ndata 6\nchange\n", time.Now().Unix())
		if _, err := runGit(dir, "", "rev-parse", "--verify", "--quiet", "refs/heads/main"); err == nil {
			in += "from refs/heads/main^0\n"
		}
		for path, content := range files {
			in += fmt.Sprintf("M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
		}
		if _, err := runGit(dir, in, "fast-import", "--quiet"); err != nil {
			panic(err)
		}
		commit = s.pushed(w, r)
	})
	return commit
}

// pushed sends the push event about main's newest commit to the apps, and returns the commit.
func (s *Server) pushed(w *world, r *repository) string {
	commit, _ := runGit(s.gitDir(r), "", "rev-parse", "--verify", "--quiet", "refs/heads/main")
	s.toApps(w, "push", r, object{"ref": "refs/heads/main", "after": commit, "pusher": object{"name": r.owner.login}})
	return commit
}

// Git runs git in a repository, and returns its output.
func (s *Server) Git(repo string, args ...string) (string, error) {
	dir := read(s, func(w *world) string { return s.gitDir(must(w.repo(repo), repo)) })
	return runGit(dir, "", args...)
}

// File returns the content of a file on main, without white space at its beginning and end.
func (s *Server) File(repo, path string) (content string, ok bool) {
	out, err := s.Git(repo, "cat-file", "blob", "refs/heads/main:"+path)
	return out, err == nil
}

// git serves a repository to clients with a token for it.
func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	if s.misbehave(w, r) {
		return
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	var repo *repository
	var status int
	var message, dir, to string
	s.with(func(w *world) {
		status, message, repo = s.admit(w, r, name, rest)
		s.saw(r, "installation", status)
		if repo != nil {
			dir, to = s.gitDir(repo), s.URL+"/"+repo.fullName()+".git/"+rest+"?"+r.URL.RawQuery
		}
	})
	switch status {
	case http.StatusOK:
		s.backendFor(dir).ServeHTTP(w, forBackend(r, dir, rest))
		if rest == "git-receive-pack" {
			s.with(func(w *world) { s.pushed(w, repo) })
		}
	case http.StatusMovedPermanently:
		http.Redirect(w, r, to, status)
	default:
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		}
		http.Error(w, message, status)
	}
}

// admit finds the repository, and returns the answer to a request for it.
func (s *Server) admit(w *world, r *http.Request, name, rest string) (status int, message string, repo *repository) {
	pushes := rest == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	_, password, _ := r.BasicAuth()
	t := w.tokens[password]
	repo = w.repo(name)
	moved := repo == nil
	if moved {
		repo = w.moved[strings.ToLower(name)]
	}
	violation := func(why string) (int, string, *repository) {
		s.violations = append(s.violations, "git "+name+": "+why)
		return http.StatusForbidden, why, nil
	}
	switch {
	case password == "":
		return http.StatusUnauthorized, "Repository not found.", nil
	case t == nil || !t.expires.After(s.now()):
		return http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.", nil
	case t.installation == nil || len(t.repos) != 1:
		return violation("The stand-in takes installation tokens for one repository alone.")
	case t.permissions["contents"] == "" || len(t.permissions) != 2:
		return violation("The stand-in takes tokens with contents and metadata alone.")
	case !t.installation.suspended.IsZero():
		return http.StatusForbidden, "This installation has been suspended", nil
	case repo == nil || repo.private && !w.reaches(t, repo):
		return http.StatusNotFound, "Repository not found.", nil
	case moved && r.Method == http.MethodGet:
		// If git had to authenticate at the old name, it also posts there, so posts are
		// served under the old name.
		return http.StatusMovedPermanently, "", repo
	case pushes && (!w.reaches(t, repo) || !t.allows("contents", "write")):
		return http.StatusForbidden, "Write access to repository not granted.", nil
	}
	return http.StatusOK, "", repo
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
		// With a length, the backend of git 2.39 loops for ever on a shorter body. Package
		// cgi refuses a chunked body.
		out.TransferEncoding, out.ContentLength = nil, -1
		out.Header.Del("Content-Length")
	}
	return out
}
