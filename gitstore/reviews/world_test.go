package reviews_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore"
	"satchel/gitstore/reviews"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const person = space.UserID("u_ada")

// counted counts the calls to the store.
type counted struct {
	*gitstore.Store
	mu        sync.Mutex
	ways, all int
	before    func() // called for each commit that is read
}

func (c *counted) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all++
	if n != nil {
		*n++
	}
}

func (c *counted) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.all
	c.all = 0
	return n
}

func (c *counted) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	c.count(nil)
	return c.Store.Head(ctx, id)
}

func (c *counted) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	c.count(nil)
	return c.Store.Files(ctx, id, at, under)
}

func (c *counted) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	c.count(nil)
	return c.Store.Diff(ctx, id, from, to)
}

func (c *counted) CommitsBetween(ctx context.Context, id space.SpaceID, from, to space.CommitID, under []space.Path) ([]gitstore.CommitBetween, int, bool, error) {
	c.count(&c.ways)
	return c.Store.CommitsBetween(ctx, id, from, to, under)
}

func (c *counted) Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error) {
	c.count(nil)
	if c.before != nil {
		c.before()
	}
	if err := ctx.Err(); err != nil {
		return space.Commit{}, err
	}
	return c.Store.Show(ctx, id, at)
}

type world struct {
	t     *testing.T
	dir   string
	git   *counted
	db    *database.DB
	r     *reviews.Reviews
	id    space.SpaceID
	clock time.Time
}

func newWorld(t *testing.T, db *database.DB) *world {
	t.Helper()
	if _, err := db.Migrate(t.Context(), reviews.Migrations()...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	git, err := gitstore.Open(gitstore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	w := &world{t: t, dir: dir, git: &counted{Store: git}, db: db, id: space.NewSpaceID(), clock: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	w.restart()
	start := space.ChangeSet{}
	for _, p := range []string{"resources/instructions.md", "resources/context.md", "skills/a/SKILL.md", "skills/b/SKILL.md", "knowledge/x.md"} {
		start.Changes = append(start.Changes, space.Change{Path: p, Content: []byte("start\n")})
	}
	if _, err := git.Create(t.Context(), w.id, start, space.Meta{Tool: "satchel"}); err != nil {
		t.Fatal(err)
	}
	return w
}

// restart forgets everything that is not in the database.
func (w *world) restart() {
	w.t.Helper()
	w.begin(reviews.Options{Patience: time.Minute})
}

func (w *world) begin(o reviews.Options) {
	w.t.Helper()
	if w.r != nil {
		w.r.Close()
	}
	o.DB, o.Git, o.Now = w.db, w.git, func() time.Time { return w.clock }
	r, err := reviews.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.r = r
	w.t.Cleanup(r.Close)
}

// write commits a file with a tool; "" deletes the file.
func (w *world) write(tool, path, content string) space.CommitID {
	w.t.Helper()
	return w.commit(tool, path, content)
}

// commit commits files with a tool. Each path is followed by its content; "" deletes the file.
func (w *world) commit(tool string, files ...string) space.CommitID {
	w.t.Helper()
	w.clock = w.clock.Add(time.Minute)
	var cs space.ChangeSet
	for i := 0; i < len(files); i += 2 {
		b, m, ok, err := w.git.Blob(w.t.Context(), w.id, "", space.Path(files[i]))
		if err != nil {
			w.t.Fatal(err)
		}
		x := space.Change{Path: files[i], Content: []byte(files[i+1])}
		if ok {
			x.Base, x.BaseMode = b, m
		}
		if files[i+1] == "" {
			x.Op = space.Delete
		}
		cs.Changes = append(cs.Changes, x)
	}
	c, err := w.git.Commit(w.t.Context(), w.id, cs, space.Meta{Tool: tool, Client: "claude", Time: w.clock})
	if err != nil || !c.Changed {
		w.t.Fatal(c, err)
	}
	return c.ID
}

// push commits a file as a person's own git does, and integrates the commit as one of a remote.
func (w *world) push(path, content, message string) {
	w.t.Helper()
	w.elsewhere(message, nil, path, content)
}

// mergeOurs merges head into an older commit, outside of Satchel. The merge drops everything
// that the older commit does not contain.
func (w *world) mergeOurs(older space.CommitID) {
	w.t.Helper()
	w.elsewhere("Merge\n", []space.CommitID{older, w.head()}, "knowledge/y.md", "y\n")
}

// elsewhere commits files on top of the first of parents, or head if parents is nil, and
// integrates the commit. Each path is followed by its content; "" deletes the file.
func (w *world) elsewhere(message string, parents []space.CommitID, files ...string) {
	w.t.Helper()
	if parents == nil {
		parents = []space.CommitID{w.head()}
	}
	c := w.foreign(message, parents, files...)
	if in, err := w.git.Integrate(w.t.Context(), w.id, c, space.Meta{Tool: "sync"}); err != nil || in.How != gitstore.FastForward {
		w.t.Fatal(in, err)
	}
}

// foreign creates a commit outside of Satchel, but does not integrate it.
func (w *world) foreign(message string, parents []space.CommitID, files ...string) space.CommitID {
	w.t.Helper()
	w.clock = w.clock.Add(time.Minute)
	repo := filepath.Join(w.dir, string(w.id)+".git")
	date := fmt.Sprintf("%d +0000", w.clock.Unix())
	run := func(in string, args ...string) string {
		cmd := testenv.Git(w.t, repo, args...)
		cmd.Stdin = strings.NewReader(in)
		cmd.Env = append(cmd.Env, "GIT_DIR="+repo, "GIT_INDEX_FILE="+filepath.Join(w.dir, "index"),
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=a@x", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_NAME=Satchel", "GIT_COMMITTER_EMAIL=satchel@localhost", "GIT_COMMITTER_DATE="+date)
		out, err := cmd.Output()
		if err != nil {
			w.t.Fatal(args, err)
		}
		return strings.TrimSpace(string(out))
	}
	on := "--empty"
	if len(parents) > 0 {
		on = string(parents[0])
	}
	run("", "read-tree", on)
	for i := 0; i < len(files); i += 2 {
		if files[i+1] == "" {
			run("", "rm", "-q", "--cached", files[i])
			continue
		}
		run("", "update-index", "--add", "--cacheinfo", "100644,"+run(files[i+1], "hash-object", "-w", "--stdin")+","+files[i])
	}
	args := []string{"commit-tree", run("", "write-tree")}
	for _, p := range parents {
		args = append(args, "-p", string(p))
	}
	return space.CommitID(run(message, args...))
}

// revert undoes the newest commit, as the page of activity does.
func (w *world) revert() {
	w.t.Helper()
	w.clock = w.clock.Add(time.Minute)
	head, err := w.git.Head(w.t.Context(), w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := w.git.Revert(w.t.Context(), w.id, []space.CommitID{head}, space.Meta{Tool: "web-revert", Client: "browser", Time: w.clock})
	if err != nil || !c.Changed {
		w.t.Fatal(c, err)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	_, data, err := w.git.Open(w.t.Context(), w.id, "", space.Path(path))
	if fault.CodeOf(err) == fault.NotFound {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) waiting() []space.Review {
	w.t.Helper()
	list, behind, err := w.r.Waiting(w.t.Context(), w.id)
	if err != nil || behind {
		w.t.Fatal(behind, err)
	}
	return list
}

func (w *world) paths() string {
	w.t.Helper()
	var out []string
	for _, r := range w.waiting() {
		out = append(out, string(r.Path))
	}
	return strings.Join(out, " ")
}

func (w *world) find(path string) space.Review {
	w.t.Helper()
	for _, r := range w.waiting() {
		if string(r.Path) == path {
			return r
		}
	}
	w.t.Fatalf("%s does not wait", path)
	return space.Review{}
}

func (w *world) head() space.CommitID {
	w.t.Helper()
	h, err := w.git.Store.Head(w.t.Context(), w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) keep(path string) {
	w.t.Helper()
	if err := w.r.Keep(w.t.Context(), w.id, person, space.Path(path), w.find(path).Blob, w.find(path).Mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) undo(path string) {
	w.t.Helper()
	w.clock = w.clock.Add(time.Minute)
	if _, err := w.r.Undo(w.t.Context(), w.id, person, space.Path(path), w.find(path).Blob, w.find(path).Mode, space.Meta{Tool: "web-undo", Client: "browser", Time: w.clock}); err != nil {
		w.t.Fatal(err)
	}
}

const skill, instructions = "skills/a/SKILL.md", "resources/instructions.md"
