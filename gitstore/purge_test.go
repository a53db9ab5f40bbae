package gitstore

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

const secret = "s3cr3t-canary-4711"

// redact is the rewrite function of most purges here.
func redact(_ space.Path, content []byte) ([]byte, bool) {
	return bytes.ReplaceAll(content, []byte(secret), []byte("REDACTED")), true
}

// leaveOut removes files that contain the secret.
func leaveOut(_ space.Path, content []byte) ([]byte, bool) {
	return content, !bytes.Contains(content, []byte(secret))
}

// assertGone searches every file in the data directory, and every object of its repositories,
// for the secret.
func assertGone(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasSuffix(p, ".git") {
			if strings.Contains(objectsOf(t, p), secret) {
				t.Errorf("%s still has an object with the secret", filepath.Base(p))
			}
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(p)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s still holds the secret", strings.TrimPrefix(p, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// objectsOf returns every object of a repository, reachable or not.
func objectsOf(t *testing.T, dir string) string {
	t.Helper()
	// This also searches git views, because a view is a directory named git.
	return git(t, dir, "cat-file", "--batch-all-objects", "--batch", "--unordered")
}

// imported builds a history with the real git, by a script in a directory, and imports it as a
// new space.
func imported(t *testing.T, s *Store, script string) space.SpaceID {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	cmd := exec.Command("sh", "-euc", `n=0
c() { n=$((n+1)); git add -A; GIT_AUTHOR_DATE="$((1700000000+n)) +0200" GIT_COMMITTER_DATE="$((1700000100+n)) -0330" git commit -q --allow-empty "$@"; }
`+strings.ReplaceAll(script, "SECRET", secret))
	cmd.Dir = dir
	cmd.Env = testenv.GitEnv("GIT_AUTHOR_NAME=Grace", "GIT_AUTHOR_EMAIL=grace@example.org", "GIT_COMMITTER_NAME=Git", "GIT_COMMITTER_EMAIL=git@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id := newSpace(t, s, nil)
	res, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, dir)), space.Meta{Author: ada}, nil)
	if err != nil || !res.History {
		t.Fatalf("%+v, %v", res, err)
	}
	return id
}

// named returns the commit with this message.
func named(t *testing.T, s *Store, id space.SpaceID, message string) space.CommitID {
	t.Helper()
	out := git(t, s.repoDir(id), "log", "--all", "--format=%H %s")
	for line := range strings.Lines(out) {
		if h, m, _ := strings.Cut(strings.TrimSpace(line), " "); m == message {
			return space.CommitID(h)
		}
	}
	t.Fatalf("no commit %q in\n%s", message, out)
	return ""
}

// history renders every commit of the branch, the oldest first, with the subjects of its
// parents and its files.
func history(t *testing.T, s *Store, id space.SpaceID) string {
	t.Helper()
	dir := s.repoDir(id)
	var b strings.Builder
	for line := range strings.Lines(git(t, dir, "log", "--topo-order", "--reverse", "--format=%H %s", "main")) {
		h, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		var parents []string
		for p := range strings.FieldsSeq(git(t, dir, "show", "-s", "--format=%P", h)) {
			parents = append(parents, git(t, dir, "show", "-s", "--format=%s", p))
		}
		fmt.Fprintf(&b, "%s <%s>", subject, strings.Join(parents, ","))
		for f := range strings.Lines(git(t, dir, "ls-tree", "-r", h)) {
			meta, path, _ := strings.Cut(strings.TrimSpace(f), "\t")
			m := strings.Fields(meta)
			content := "submodule"
			if m[1] == "blob" {
				content = git(t, dir, "cat-file", "blob", m[2])
			}
			mode := map[string]string{"100755": "*", "120000": "@"}[m[0]]
			fmt.Fprintf(&b, " %s%s=%s", path, mode, content)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestPurge specifies what a purge changes in commits.
func TestPurge(t *testing.T) {
	for _, c := range []struct {
		name    string
		script  string
		since   string // the message of a commit
		rewrite RewriteFile
		want    string
		files   string
		commits int
	}{
		{
			name: "a secret is blanked wherever it was written, and later edits stay",
			script: `echo one >a; c -m first; echo SECRET >k; c -m leak; echo two >a; c -m edit
				printf 'SECRET\nmore\n' >k; c -m more; echo gone >k; c -m clean`,
			rewrite: redact,
			want: `first <> a=one
leak <first> a=one k=REDACTED
edit <leak> a=two k=REDACTED
more <edit> a=two k=REDACTED
more
clean <more> a=two k=gone
`,
			files: "k", commits: 4,
		}, {
			name:    "a commit that did nothing else is dropped; the file is what it was before",
			script:  `echo one >k; c -m first; echo SECRET >k; c -m leak; echo two >a; c -m edit`,
			rewrite: leaveOut,
			want:    "first <> k=one\nedit <first> a=two k=one\n",
			files:   "k", commits: 2,
		}, {
			name:    "a new file that is left out is in no later commit, until it is written without the secret",
			script:  `echo x >a; c -m first; echo SECRET >k; echo y >a; c -m leak; chmod +x k; c -m mode; echo clean >k; c -m clean; rm k; c -m delete`,
			rewrite: leaveOut,
			want: `first <> a=x
leak <first> a=y
clean <leak> a=y k*=clean
delete <clean> a=y
`,
			files: "k", commits: 4,
		}, {
			name:    "a change of mode keeps what became of the content",
			script:  `echo SECRET >k; c -m leak; chmod +x k; c -m mode`,
			rewrite: redact,
			want:    "leak <> k=REDACTED\nmode <leak> k*=REDACTED\n",
			files:   "k", commits: 2,
		}, {
			name:    "a rename is followed by its content",
			script:  `echo x >a; echo SECRET >k; c -m leak; mkdir d; git mv k d/k; c -m rename; git mv d e; c -m again`,
			rewrite: redact,
			want: `leak <> a=x k=REDACTED
rename <leak> a=x d/k=REDACTED
again <rename> a=x e/k=REDACTED
`,
			files: "d/k e/k k", commits: 3,
		}, {
			name:    "commits that since reaches stay as they are, and what came after does not",
			script:  `echo SECRET >old; c -m public; echo SECRET >k; c -m leak; echo z >z; c -m edit; git mv old moved; c -m move`,
			since:   "public",
			rewrite: redact,
			want: fmt.Sprintf(`public <> old=%[1]s
leak <public> k=REDACTED old=%[1]s
edit <leak> k=REDACTED old=%[1]s z=z
move <edit> k=REDACTED moved=REDACTED z=z
`, secret),
			files: "k moved", commits: 3,
		}, {
			name:    "a commit before the first leak stays as it is",
			script:  `echo a >a; c -m first; echo b >b; c -m second; echo SECRET >k; c -m leak`,
			rewrite: leaveOut,
			want:    "first <> a=a\nsecond <first> a=a b=b\n",
			files:   "k", commits: 1,
		}, {
			name:    "a first commit stays even where nothing is left of it",
			script:  `echo SECRET >k; c -m leak; echo a >a; c -m edit`,
			rewrite: leaveOut,
			want:    "leak <>\nedit <leak> a=a\n",
			files:   "k", commits: 2,
		}, {
			name:    "a commit that was empty before stays",
			script:  `echo a >a; c -m first; echo SECRET >k; c -m leak; c -m empty; echo b >b; c -m edit`,
			rewrite: leaveOut,
			want:    "first <> a=a\nempty <first> a=a\nedit <empty> a=a b=b\n",
			files:   "k", commits: 3,
		}, {
			name: "a merge keeps its parents, and takes from each what it took before",
			script: `echo a >a; c -m first; git checkout -qb side; echo SECRET >k; c -m side-leak; echo s >s; c -m side
				git checkout -q main; echo b >b; c -m ours; git merge -q --no-commit side; c -m merge; echo c >c; c -m after`,
			rewrite: redact,
			want: `first <> a=a
ours <first> a=a b=b
side-leak <first> a=a k=REDACTED
side <side-leak> a=a k=REDACTED s=s
merge <ours,side> a=a b=b k=REDACTED s=s
after <merge> a=a b=b c=c k=REDACTED s=s
`,
			files: "k", commits: 4,
		}, {
			name: "what a merge itself wrote is rewritten",
			script: `echo a >a; c -m first; git checkout -qb side; echo side >a; c -m side
				git checkout -q main; echo ours >a; c -m ours; git merge -q --no-commit side || true; echo "both SECRET" >a; c -m merge`,
			rewrite: redact,
			want: `first <> a=a
ours <first> a=ours
side <first> a=side
merge <ours,side> a=both REDACTED
`,
			files: "a", commits: 1,
		}, {
			name: "a merge of a side that is dropped whole goes with it",
			script: `echo a >a; c -m first; git checkout -qb side; echo SECRET >k; c -m leak
				git checkout -q main; echo b >b; c -m ours; git merge -q --no-commit side; c -m merge; echo c >c; c -m after`,
			rewrite: leaveOut,
			want: `first <> a=a
ours <first> a=a b=b
after <ours> a=a b=b c=c
`,
			files: "k", commits: 3,
		}, {
			name: "what the remote has stays, and the merge with it is made again",
			script: `echo a >a; c -m first; git checkout -qb side; echo "SECRET public" >p; c -m theirs
				git checkout -q main; echo SECRET >k; c -m leak; git merge -q --no-commit side; c -m merge`,
			since:   "theirs",
			rewrite: redact,
			want: fmt.Sprintf(`first <> a=a
leak <first> a=a k=REDACTED
theirs <first> a=a p=%[1]s public
merge <leak,theirs> a=a k=REDACTED p=%[1]s public
`, secret),
			files: "k", commits: 2,
		}, {
			name: "where only the remote's commits are left, head is the remote's",
			script: `echo a >a; c -m first; git checkout -qb side; echo p >p; c -m theirs
				git checkout -q main; echo SECRET >k; c -m leak; git merge -q --no-commit side; c -m merge`,
			since:   "theirs",
			rewrite: leaveOut,
			want:    "first <> a=a\ntheirs <first> a=a p=p\n",
			files:   "k", commits: 2,
		}, {
			name:    "a directory that became a file with the secret, and a file that became a directory",
			script:  `mkdir d; echo x >d/x; echo f >f; c -m first; rm -r d; echo SECRET >d; rm f; mkdir f; echo y >f/y; c -m swap; rm d; mkdir d; echo z >d/z; c -m back`,
			rewrite: leaveOut,
			want:    "first <> d/x=x f=f\nswap <first> f/y=y\nback <swap> d/z=z f/y=y\n",
			files:   "d", commits: 2,
		}, {
			name:   "a link whose target had the secret, and one that would lead out of the space",
			script: `echo a >a; ln -s SECRET good; c -m first; ln -sf a good; c -m second`,
			rewrite: func(_ space.Path, b []byte) ([]byte, bool) {
				return bytes.ReplaceAll(b, []byte(secret), []byte("../up")), true
			},
			want:  "first <> a=a\nsecond <first> a=a good@=a\n",
			files: "good", commits: 2,
		}, {
			name:    "two histories joined without a common commit",
			script:  `echo a >a; c -m first; git checkout -q --orphan other; git rm -rfq .; echo SECRET >k; c -m other; git checkout -q main; git merge -q --allow-unrelated-histories --no-commit other; c -m join`,
			rewrite: redact,
			want: `first <> a=a
other <> k=REDACTED
join <first,other> a=a k=REDACTED
`,
			files: "k", commits: 2,
		}, {
			name:    "nothing to rewrite",
			script:  `echo a >a; c -m first; echo b >b; c -m second`,
			rewrite: redact,
			want:    "first <> a=a\nsecond <first> a=a b=b\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			id := imported(t, s, c.script)
			var since space.CommitID
			if c.since != "" {
				since = named(t, s, id, c.since)
			}
			before, err := s.Head(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			asked := map[string]int{}
			res, err := s.Purge(t.Context(), id, since, func(p space.Path, b []byte) ([]byte, bool) {
				asked[string(p)+"\x00"+string(b)]++
				return c.rewrite(p, b)
			}, space.Meta{Author: ada})
			if err != nil {
				t.Fatal(err)
			}
			for k, n := range asked {
				if n > 1 {
					t.Errorf("asked %d times for %q", n, k)
				}
			}
			if got := history(t, s, id); got != c.want {
				t.Errorf("history:\n%s\nwant:\n%s", got, c.want)
			}
			var files []string
			for _, f := range res.Files {
				files = append(files, string(f))
			}
			head, _ := s.Head(t.Context(), id)
			if got := strings.Join(files, " "); got != c.files || res.Commits != c.commits || res.Head != head || res.Commit.ID != head || res.Commit.Changed != (head != before) {
				t.Errorf("files %q, %d commits: %+v", got, res.Commits, res)
			}
			if c.since == "" {
				assertGone(t, s.o.Dir)
			}
			fsck(t, s, id)
			if dangling := git(t, s.repoDir(id), "fsck", "--full", "--no-reflogs", "--unreachable"); head != before && dangling != "" {
				t.Errorf("left behind: %s", dangling)
			}
			// The space accepts changes, and is the same after it is opened again.
			commit(t, s, id, writes(map[string]string{"later": "x"}))
			reopened(t, s, id)
		})
	}
}

// reopened checks that a space has the same content when it is opened from disk.
func reopened(t *testing.T, s *Store, id space.SpaceID) {
	t.Helper()
	want, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.open[id].db.Close()
	delete(s.open, id)
	s.mu.Unlock()
	if got, err := s.Head(t.Context(), id); err != nil || got != want {
		t.Fatalf("head %s after reopening, want %s: %v", got, want, err)
	}
}

// TestPurgeKeepsWhoAndWhen checks that commits keep their authors, dates, messages and
// trailers, but not their signatures.
func TestPurgeKeepsWhoAndWhen(t *testing.T) {
	s := newStore(t)
	id := imported(t, s, `echo a >a; c -m first; echo SECRET >k; c -m 'leak

a body

Satchel-Tool: bash
Satchel-Client: claude'
		h=$(git cat-file commit HEAD | sed 's/^committer .*/&\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\nencoding UTF-8/' | git hash-object -t commit -w --stdin); git reset -q --hard $h
		echo b >b; c -m last`)
	format := "--format=%an|%ae|%ad|%cn|%ce|%cd|%e|%B"
	before := git(t, s.repoDir(id), "log", "--date=raw", format, "main")
	if !strings.Contains(git(t, s.repoDir(id), "cat-file", "commit", "main~1"), "gpgsig") {
		t.Fatal("the commit is not signed: the test shows nothing")
	}
	if _, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	if after := git(t, s.repoDir(id), "log", "--date=raw", format, "main"); after != before {
		t.Errorf("log:\n%s\nwas:\n%s", after, before)
	}
	if strings.Contains(git(t, s.repoDir(id), "cat-file", "commit", "main~1"), "SIGNATURE") {
		t.Error("the signature of another commit stayed")
	}
	log, err := s.Log(t.Context(), id, space.LogQuery{})
	if err != nil || log[1].ClaimedTool != "bash" || log[1].Message != "leak\n\na body" {
		t.Errorf("%+v %v", log[1], err)
	}
}

// TestPurgeOfMessagesAndNames checks that the rest of the commits stays the same, including
// trees and dates.
func TestPurgeOfMessagesAndNames(t *testing.T) {
	s := newStore(t)
	id := imported(t, s, `echo a >a; c -m first; echo b >b; c -m 'leak SECRET

a body'; echo d >d; c --author "x SECRET <SECRET@example.org>" -m third; echo e >e; c -m last`)
	format := "--format=%T|%an|%ae|%ad|%cn|%ce|%cd|%B"
	before := git(t, s.repoDir(id), "log", "--date=raw", format, "main")
	first := git(t, s.repoDir(id), "rev-parse", "main~3")
	res, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada})
	if err != nil || res.Commits != 3 || res.Words != 2 || len(res.Files) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if after, want := git(t, s.repoDir(id), "log", "--date=raw", format, "main"), strings.ReplaceAll(before, secret, "REDACTED"); after != want {
		t.Errorf("log:\n%s\nwant:\n%s", after, want)
	}
	if now := git(t, s.repoDir(id), "rev-parse", "main~3"); now != first {
		t.Error("a commit before the first leak was rewritten")
	}
	git(t, s.repoDir(id), "fsck", "--strict")
	assertGone(t, s.o.Dir)
}
