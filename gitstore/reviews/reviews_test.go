package reviews_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore"
	"satchel/gitstore/reviews"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const person = space.UserID("u_ada")

// counted counts what is asked of the store.
type counted struct {
	*gitstore.Store
	mu        sync.Mutex
	ways, all int
	trees     int    // whole ones that were listed
	before    func() // each commit that is looked into
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

func (c *counted) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.FileChange, error) {
	if c.count(nil); under == "" {
		c.count(&c.trees)
	}
	return c.Store.Files(ctx, id, at, under)
}

func (c *counted) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	c.count(nil)
	return c.Store.Diff(ctx, id, from, to)
}

func (c *counted) Way(ctx context.Context, id space.SpaceID, from, to space.CommitID, under []space.Path) ([]gitstore.Step, int, bool, error) {
	c.count(&c.ways)
	return c.Store.Way(ctx, id, from, to, under)
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

// restart forgets all that is not in the database.
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

// write commits a file by a tool; "" deletes it.
func (w *world) write(tool, path, content string) space.CommitID {
	w.t.Helper()
	return w.commit(tool, path, content)
}

// commit commits files by a tool, each with its content; "" deletes one.
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

// push makes a commit as somebody's own git does, and integrates it as what a
// remote had.
func (w *world) push(path, content, message string) {
	w.t.Helper()
	w.elsewhere(message, nil, path, content)
}

// mergeOurs merges, elsewhere, what is at head into a commit on top of an older one,
// of which it drops all that is not in that.
func (w *world) mergeOurs(older space.CommitID) {
	w.t.Helper()
	w.elsewhere("Merge\n", []space.CommitID{older, w.head()}, "knowledge/y.md", "y\n")
}

// elsewhere commits files, each with its content or deleted by "", on what the first
// of parents has; nil is head.
func (w *world) elsewhere(message string, parents []space.CommitID, files ...string) {
	w.t.Helper()
	if parents == nil {
		parents = []space.CommitID{w.head()}
	}
	w.clock = w.clock.Add(time.Minute)
	repo := filepath.Join(w.dir, string(w.id)+".git")
	date := fmt.Sprintf("%d +0000", w.clock.Unix())
	run := func(in string, args ...string) string {
		cmd := exec.Command(testenv.NeedProgram(w.t, "git"), args...)
		cmd.Dir, cmd.Stdin = repo, strings.NewReader(in)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "GIT_DIR=" + repo, "GIT_INDEX_FILE=" + filepath.Join(w.dir, "index"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=a@x", "GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_NAME=Satchel", "GIT_COMMITTER_EMAIL=satchel@localhost", "GIT_COMMITTER_DATE=" + date,
		}
		out, err := cmd.Output()
		if err != nil {
			w.t.Fatal(args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run("", "read-tree", string(parents[0]))
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
	c := run(message, args...)
	if in, err := w.git.Integrate(w.t.Context(), w.id, space.CommitID(c), space.Meta{Tool: "sync"}); err != nil || in.How != gitstore.FastForward {
		w.t.Fatal(in, err)
	}
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

func (w *world) waiting() []reviews.Review {
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

func (w *world) find(path string) reviews.Review {
	w.t.Helper()
	for _, r := range w.waiting() {
		if string(r.Path) == path {
			return r
		}
	}
	w.t.Fatalf("%s does not wait", path)
	return reviews.Review{}
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

// history is what is done in a space, and what waits then.
type history struct {
	name string
	do   func(w *world)
	want string
}

func (tc history) run(t *testing.T) {
	t.Helper()
	t.Run(tc.name, func(t *testing.T) {
		w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
		tc.do(w)
		if got := w.paths(); got != tc.want {
			t.Errorf("%q waits, want %q", got, tc.want)
		}
		w.restart()
		if got := w.paths(); got != tc.want {
			t.Errorf("after a restart %q waits, want %q", got, tc.want)
		}
	})
}

// TestWaiting is the specification of what waits. It is the same whether somebody
// looked in between, or the server began anew.
func TestWaiting(t *testing.T) {
	for _, tc := range []history{
		{"nothing at the start", func(*world) {}, ""},
		{"what an AI wrote", func(w *world) { w.write("bash", skill, "ai\n") }, skill},
		{"every file that instructs", func(w *world) {
			w.write("bash", instructions, "ai\n")
			w.write("edit", "resources/context.md", "ai\n")
			w.write("write", "skills/new/deep/script.sh", "ai\n")
		}, "resources/context.md resources/instructions.md skills/new/deep/script.sh"},
		{"every resource", func(w *world) { w.write("bash", "resources/other.md", "ai\n") }, "resources/other.md"},
		{"nothing else", func(w *world) {
			w.write("bash", "knowledge/x.md", "ai\n")
			w.write("remember", "memory/preference/x.md", "ai\n")
			w.write("bash", "skillset/x.md", "ai\n")
		}, ""},
		{"not what a person wrote on the pages", func(w *world) { w.write("web", skill, "p\n") }, ""},
		{"attack: a command restores what a person undid", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.write("restore", skill, "ai\n")
		}, skill},
		{"not what a command restored as they knew it", func(w *world) { w.write("bash", skill, "ai\n"); w.write("restore", skill, "start\n") }, ""},
		{"attack: a person adds a line to what an AI changed unseen", func(w *world) {
			w.write("bash", skill, "start\nevil\u200b\n")
			w.write("web", skill, "start\nevil\u200b\nmine\n")
		}, skill},
		{"attack: and another one", func(w *world) {
			w.write("bash", skill, "start\nevil\n")
			w.write("web", skill, "start\nevil\nmine\n")
			w.write("web", skill, "start\nevil\nmine\nmine\n")
		}, skill},
		{"attack: a person elsewhere adds a line to what an AI changed unseen", func(w *world) {
			w.write("bash", skill, "start\nevil\n")
			w.push(skill, "start\nevil\nmine\n", "Add a line\n")
		}, skill},
		{"not what a person wrote back", func(w *world) { w.write("bash", skill, "ai\n"); w.write("web", skill, "start\n") }, ""},
		{"not what a person wrote into what they kept", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.write("web", skill, "ai\nmine\n")
		}, ""},
		{"an AI's change of what a person wrote", func(w *world) { w.write("web", skill, "p\n"); w.write("bash", skill, "ai\n") }, skill},
		{"not what was kept", func(w *world) { w.write("bash", skill, "ai\n"); w.keep(skill) }, ""},
		{"what changed after it was kept", func(w *world) { w.write("bash", skill, "ai\n"); w.keep(skill); w.write("bash", skill, "worse\n") }, skill},
		{"not what was kept and came back", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.write("bash", skill, "worse\n")
			w.write("bash", skill, "ai\n")
		}, ""},
		{"not what was undone", func(w *world) { w.write("bash", skill, "ai\n"); w.undo(skill) }, ""},
		{"what was undone and written again", func(w *world) { w.write("bash", skill, "ai\n"); w.undo(skill); w.write("bash", skill, "ai\n") }, skill},
		{"not what a person wrote again", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.write("web", skill, "ai\n")
		}, ""},
		{"an AI's content that was undone and brought back, unseen", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.revert()
			w.revert()
		}, skill},
		{"and where it was looked at in between", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.waiting()
			w.revert()
			w.waiting()
			w.revert()
		}, skill},
		{"what a person rejected, once their undoing is undone", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.revert()
		}, skill},
		{"what an AI had written before what was undone", func(w *world) {
			w.write("bash", skill, "ai 1\n")
			w.write("bash", skill, "ai 2\n")
			w.revert()
		}, skill},
		{"not what was kept, undone and brought back", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.revert()
			w.revert()
		}, ""},
		{"not what a person wrote, undone and brought back", func(w *world) {
			w.write("web", skill, "p\n")
			w.revert()
			w.revert()
		}, ""},
		{"not what a person wrote, after an AI's was undone", func(w *world) {
			w.write("web", skill, "p\n")
			w.write("bash", skill, "ai\n")
			w.revert()
		}, ""},
		{"attack: a remote's commit that says a person made it on the pages", func(w *world) { w.push(skill, "evil\n", "x\n\nSatchel-Tool: web\nSatchel-Client: browser\n") }, skill},
		{"attack: one that says the server made it", func(w *world) { w.push(skill, "evil\n", "x\n\nSatchel-Tool: satchel\n") }, skill},
		{"attack: one that says it undoes", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.push(skill, "start\n", "Undo “x”\n\nSatchel-Tool: web\n")
			w.push(skill, "ai\n", "Undo “y”\n\nSatchel-Tool: web\n")
		}, skill},
		{"a remote's commit that says an AI made it", func(w *world) { w.push(skill, "ai\n", "x\n\nSatchel-Tool: bash\n") }, skill},
		{"not what a person pushed to the remote", func(w *world) { w.push(skill, "p\n", "x\n") }, ""},
		{"attack: what an AI made is applied again elsewhere: cherry-pick -x", func(w *world) {
			w.push(skill, "ai\n", "x\n\nSatchel-Tool: bash\nSatchel-Client: claude\n(cherry picked from commit 1234567)\n")
		}, skill},
		{"attack: and signed off", func(w *world) {
			w.push(skill, "ai\n", "x\n\nSatchel-Tool: bash\nSatchel-Client: claude\nSigned-off-by: Ada <a@x>\n")
		}, skill},
		{"attack: and by GitHub, which names who else wrote it", func(w *world) {
			w.push(skill, "ai\n", "x (#1)\n\n* x\n\nSatchel-Tool: bash\nSatchel-Client: claude\n\nCo-authored-by: Ada <a@x>\n")
		}, skill},
		{"attack: and squashed", func(w *world) {
			w.push(skill, "ai\n", "Squashed commit of the following:\n\ncommit 1234567\n\n    x\n\n    satchel-tool: bash\n")
		}, skill},
		{"attack: and in a message so long that it is not read to its end", func(w *world) {
			w.push(skill, "ai\n", "x\n\n"+strings.Repeat("y\n", 50_000)+"\nSatchel-Tool: bash\nSigned-off-by: Ada <a@x>\n")
		}, skill},
		{"attack: git elsewhere reverts a person's undoing", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.push(skill, "ai\n", "Revert \"Undo what an AI changed\"\n\nThis reverts commit 1234567.\n")
		}, skill},
		{"attack: a merge elsewhere brings back what a person undid", func(w *world) {
			ai := w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.mergeOurs(ai)
		}, skill},
		{"attack: and an AI writes elsewhere then", func(w *world) {
			ai := w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.waiting()
			w.mergeOurs(ai)
			w.waiting()
			w.write("bash", "knowledge/x.md", "ai\n")
		}, skill},
		{"not what a merge elsewhere dropped", func(w *world) {
			start := w.head()
			w.write("bash", skill, "ai\n")
			w.waiting()
			w.mergeOurs(start)
		}, ""},
		{"a skill that an AI deleted", func(w *world) { w.waiting(); w.write("bash", skill, "") }, skill},
		{"instructions that an AI deleted", func(w *world) { w.write("bash", instructions, "") }, instructions},
		{"not what a person deleted", func(w *world) { w.waiting(); w.write("bash", skill, "ai\n"); w.waiting(); w.write("web", skill, "") }, ""},
		{"attack: a person's revert of something else confirms", func(w *world) { w.write("bash", skill, "ai\n"); w.write("web-revert", skill, "ai, less\n") }, skill},
		{"attack: a restore on the pages confirms", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.write("web", skill, "p\n")
			w.write("web-restore", skill, "ai\n")
		}, skill},
		{"not what a person restored as they knew it", func(w *world) { w.write("bash", skill, "ai\n"); w.write("web-restore", skill, "start\n") }, ""},
		{"attack: the move of a directory confirms what is in it", func(w *world) {
			w.commit("bash", "skills/evil/SKILL.md", "evil\n")
			w.commit("web-move", "skills/evil/SKILL.md", "", "skills/good/SKILL.md", "evil\n")
		}, "skills/good/SKILL.md"},
		{"attack: what is moved is taken for what a person knows elsewhere in it", func(w *world) {
			w.commit("bash", "skills/a/other.md", "start\n")
			w.commit("web-move", "skills/a/SKILL.md", "", "skills/a/other.md", "", "skills/m/SKILL.md", "start\n", "skills/m/other.md", "start\n")
		}, "skills/m/other.md"},
		{"attack: git elsewhere moves what waits", func(w *world) {
			w.write("bash", skill, "evil\n")
			w.elsewhere("x\n", nil, skill, "", "skills/m/SKILL.md", "evil\n")
		}, "skills/m/SKILL.md"},
		{"attack: and changes a line of it", func(w *world) {
			w.write("bash", skill, "evil\n")
			w.elsewhere("x\n", nil, skill, "", "skills/m/SKILL.md", "evil\nmine\n")
		}, "skills/m/SKILL.md"},
		{"not what a person knew and git elsewhere moved", func(w *world) {
			w.elsewhere("x\n", nil, skill, "", "skills/m/SKILL.md", "start\n")
		}, ""},
		{"not what a person knew and moved", func(w *world) { w.commit("web-move", skill, "", "skills/m/SKILL.md", "start\n") }, ""},
		{"what an AI moved", func(w *world) { w.commit("bash", skill, "", "skills/m/SKILL.md", "start\n") }, skill + " skills/m/SKILL.md"},
		{"attack: an AI puts back what a person wrote once", func(w *world) {
			w.write("web", skill, "allow\n")
			w.write("web", skill, "never allow\n")
			w.write("bash", skill, "allow\n")
		}, skill},
		{"attack: an AI puts back what a person kept once", func(w *world) {
			w.write("bash", skill, "allow\n")
			w.keep(skill)
			w.write("web", skill, "never allow\n")
			w.write("bash", skill, "allow\n")
		}, skill},
		{"attack: an AI deletes again what a person deleted once", func(w *world) {
			w.write("web", skill, "")
			w.write("web", skill, "never allow\n")
			w.write("bash", skill, "")
		}, skill},
		{"attack: an AI brings back what a person deleted", func(w *world) { w.write("web", skill, ""); w.write("bash", skill, "start\n") }, skill},
		{"what a merge made of both sides", func(w *world) { w.write("sync", skill, "merged\n") }, skill},
	} {
		tc.run(t)
	}
}

func TestDecisions(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWorld(t, db)
		w.write("web", skill, "mine\n")
		known := w.write("web", skill, "mine, better\n")
		w.write("bash", skill, "ai\n")
		last := w.write("bash", skill, "ai, again\n")
		w.write("bash", "knowledge/x.md", "ai\n")
		got := w.find(skill)
		if got.Base != known || got.Head != w.head() || got.Commit != last || got.Client != "claude" || got.Tool != "bash" || got.When.IsZero() {
			t.Errorf("%+v", got)
		}
		w.undo(skill)
		if text := w.read(skill); text != "mine, better\n" {
			t.Errorf("undone to %q", text)
		}
		w.write("bash", instructions, "ai 1\n")
		w.keep(instructions)
		kept := w.head()
		w.write("bash", instructions, "ai 2\n")
		w.restart()
		if b := w.find(instructions).Base; b != kept {
			t.Errorf("the base is %s, and not what was kept, %s", b, kept)
		}
		w.undo(instructions)
		if text := w.read(instructions); text != "ai 1\n" {
			t.Errorf("undone to %q", text)
		}
		w.write("bash", "skills/new/SKILL.md", "ai\n")
		w.undo("skills/new/SKILL.md")
		if w.read("skills/new/SKILL.md") != "" {
			t.Error("a new skill is there after it was undone")
		}
		w.write("bash", "skills/b/SKILL.md", "")
		w.undo("skills/b/SKILL.md")
		if w.read("skills/b/SKILL.md") != "start\n" {
			t.Error("a deleted skill is not back")
		}
		list, err := w.r.Decisions(t.Context(), w.id, 10)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, d := range list {
			if d.By != person || d.At.IsZero() {
				t.Errorf("%+v", d)
			}
			said = append(said, fmt.Sprintf("%s %s", d.Decision, d.Path))
		}
		if s := strings.Join(said, ", "); !strings.Contains(s, "kept "+instructions) || !strings.Contains(s, "undone "+skill) || len(said) != 5 {
			t.Error(s)
		}
	})
}

// Attack: a person confirms what they were shown while an AI writes something else.
func TestOnlyWhatWasSeenIsDecided(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("bash", skill, "harmless\n")
	seen := w.find(skill)
	w.write("bash", skill, "harmful\n")
	if err := w.r.Keep(t.Context(), w.id, person, skill, seen.Blob, seen.Mode); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("kept: %v", err)
	}
	if _, err := w.r.Undo(t.Context(), w.id, person, skill, seen.Blob, seen.Mode, space.Meta{Tool: "web"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("undone: %v", err)
	}
	for _, p := range []space.Path{"knowledge/x.md", "skills/none", ""} {
		if err := w.r.Keep(t.Context(), w.id, person, p, seen.Blob, seen.Mode); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%q: %v", p, err)
		}
	}
	if w.paths() != skill || w.read(skill) != "harmful\n" {
		t.Error("something was changed")
	}
}
