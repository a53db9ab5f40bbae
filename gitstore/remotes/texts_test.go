package remotes

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

var update = flag.Bool("update", false, "write the golden file of all texts anew")

func everyProblem() []Problem {
	return []Problem{
		transport.Auth, transport.Forbidden, transport.Gone, transport.Moved, transport.ProtectedBranch, transport.Workflow, transport.Secret,
		transport.TooLarge, transport.OverLimit, transport.Rejected, transport.RateLimited, transport.Server, transport.Network, transport.DNS,
		transport.TLS, transport.Timeout, transport.BlockedAddress, transport.BadURL, transport.Shallow, transport.Malformed, transport.NoBranch,
		transport.Stale, transport.Busy, transport.NoGit, transport.DiskFull, transport.Unknown,
		NoToken, NoAccess, Restless, Missing, Internal,
	}
}

const (
	atGitHub  = "https://github.com/ann/notes"
	elsewhere = "https://git.example/ann/notes.git"
)

// errorOf returns a problem as a transfer reports it.
func errorOf(p Problem, host string) error {
	switch p {
	case NoToken:
		return &ownError{p, fault.New(fault.Invalid, "INTERNAL")}
	case NoAccess:
		return &ownError{p, fault.New(fault.Unavailable, "The GitHub App was suspended for this repository.")}
	case Restless:
		return errRestless
	case Missing:
		return fault.New(fault.NotFound, "INTERNAL")
	case Internal:
		return fmt.Errorf("INTERNAL")
	}
	e := &transport.Error{Problem: p, Op: "push", Host: host, Branch: "main", Err: fmt.Errorf("INTERNAL")}
	switch p {
	case transport.Moved:
		e.Target = "git.elsewhere.example"
	case transport.Workflow:
		e.Paths = []space.RemoteLocation{{Path: ".github/workflows/ci.yml"}}
	case transport.TooLarge:
		e.Paths = []space.RemoteLocation{{Path: "videos/talk.mp4"}}
	case transport.Secret:
		e.Paths = []space.RemoteLocation{{Path: "notes/keys.md", Line: 12, Rule: "Some Access Token"}}
		e.Said = []string{"https://github.com/ann/notes/security/secret-scanning/unblock-secret/2abcDEF", "https://evil.example/security"}
	}
	return e
}

// nameError returns the error for a name that cannot be used.
func nameError(name string) error {
	_, err := space.ParsePath(name)
	return err
}

// checkedOut is the refusal of a repository that is not bare.
func checkedOut(host string) error {
	return &transport.Error{Problem: transport.Rejected, Op: "push", Host: host, Branch: "main", Said: []string{"error: refusing to update checked out branch: refs/heads/main"}}
}

// allTexts renders every text of this package as people see it.
func allTexts() string {
	var b strings.Builder
	say := func(t *trouble) { fmt.Fprintf(&b, "  %s\n  → %s\n", t.detail, t.remedy) }
	for _, p := range everyProblem() {
		speed := "tried again by itself"
		if isSlow(p) {
			speed = "a person must act"
		}
		fmt.Fprintf(&b, "## %s (%s)\n\n", p, speed)
		generic := explain(space.Remote{URL: elsewhere, Branch: "main", Kind: space.KindToken}, errorOf(p, "git.example"))
		b.WriteString("at another server:\n")
		say(generic)
		own := explain(space.Remote{URL: atGitHub, Branch: "main", Kind: space.KindToken}, errorOf(p, "github.com"))
		app := explain(space.Remote{URL: atGitHub, Branch: "main", Kind: space.KindGitHub}, errorOf(p, "github.com"))
		if own.remedy != generic.remedy {
			b.WriteString("at github.com, with a token:\n")
			say(own)
		}
		if app.remedy != generic.remedy && app.remedy != own.remedy {
			b.WriteString("at github.com, by the app:\n")
			say(app)
		}
		b.WriteString("\n")
	}
	b.WriteString("## auth, without a token\n\n")
	say(explain(space.Remote{URL: elsewhere, Kind: space.KindNone}, errorOf(transport.Auth, "git.example")))
	say(explain(space.Remote{URL: atGitHub, Kind: space.KindNone}, errorOf(transport.Auth, "github.com")))
	b.WriteString("\n## auth, by ssh\n\n")
	say(explain(space.Remote{URL: "ssh://git@git.example/ann/notes", Kind: space.KindSSH}, errorOf(transport.Auth, "git.example")))
	b.WriteString("\n## reading is forbidden\n\n")
	e := &transport.Error{Problem: transport.Forbidden, Op: "list", Host: "git.example", Branch: "main"}
	say(explain(space.Remote{URL: elsewhere, Kind: space.KindToken}, e))
	b.WriteString("\n## with files checked out\n\n")
	say(explain(space.Remote{URL: elsewhere, Kind: space.KindToken}, checkedOut("git.example")))
	say(explain(space.Remote{URL: "/srv/notes", Kind: space.KindNone}, checkedOut("this machine")))
	b.WriteString("\n## of a directory\n\n")
	for _, p := range []Problem{transport.Gone, transport.Forbidden, transport.Malformed, transport.Rejected} {
		say(explain(space.Remote{URL: "/srv/notes", Kind: space.KindNone}, errorOf(p, "this machine")))
	}
	b.WriteString("\n## with a limit of this server's\n\n")
	say(explain(space.Remote{URL: elsewhere}, fault.New(fault.TooLarge, "With what the remote has, the space would have 300000 files of 2 GB, and 200000 files of 1 GB are allowed.")))
	b.WriteString("\n## where the store takes no changes\n\n")
	say(explain(space.Remote{URL: elsewhere}, fault.Wrap(fmt.Errorf("INTERNAL"), fault.Unavailable, "The space could not be written to disk and takes no changes until the server is restarted.")))
	b.WriteString("\n## notices\n\n")
	r := space.Remote{URL: atGitHub, Branch: "main"}
	many := gitstore.Integration{Commit: space.Commit{ID: "0123456789abcdef0123456789abcdef01234567"}}
	for i := range 7 {
		p := fmt.Sprintf("notes/%d.md", i)
		many.Commit.Conflicts = append(many.Commit.Conflicts, space.Conflict{Path: space.Path(p), Kept: space.Path(fmt.Sprintf("notes/%d.conflict-89abcdef01.md", i))})
	}
	one := gitstore.Integration{Commit: space.Commit{
		Conflicts: []space.Conflict{{Path: "a.md", Kept: "a.conflict-89abcdef01.md"}, {Path: "b.md"}, {Path: "e.md", Kept: "e.md"}, {Path: "theirs.md", Kept: "ours.md"}},
		Rejected:  []space.Rejection{{Path: "con\nfig \x1b[31m“x”", Err: nameError("con\nfig")}},
	}}
	var notes []string
	notes = append(notes, mergeNotices(r, one, true)...)
	notes = append(notes, mergeNotices(r, many, false)...)
	notes = append(notes, noticeEmptied(r), noticeDeleted(r), noticeReplaced(r, "0123456789012345678901234567890123456789"), noticeRenamed(r, "trunk"))
	for _, n := range notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

// This test shows every text in one place. After a change, run it with -update, and read the
// difference as a person who does not know git.
func TestTexts(t *testing.T) {
	golden := filepath.Join("testdata", "texts.golden")
	got := allTexts()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the texts differ from %s; run with -update and read the difference", golden)
	}
	if strings.Contains(got, "INTERNAL") {
		t.Error("a cause that is for the log alone is told to people")
	}
}

// Attack: a refusal links to another page for allowing a secret.
func TestAllowLink(t *testing.T) {
	for said, want := range map[string]string{
		"  https://github.com/a/b/security/secret-scanning/unblock-secret/2x":                        "https://github.com/a/b/security/secret-scanning/unblock-secret/2x",
		"https://evil.example/https://github.com/":                                                   "",
		"https://github.com.evil.example/a/b/security/secret-scanning/unblock-secret/x":              "",
		"https://github.com/a/b/security/secret-scanning/unblock-secret/2x.evil.example ignore that": "https://github.com/a/b/security/secret-scanning/unblock-secret/2x",
	} {
		if got := allowLink([]string{"x", said}); got != want {
			t.Errorf("%q: %q", said, got)
		}
	}
	e := errorOf(transport.Secret, "git.example")
	if got := explain(space.Remote{URL: elsewhere}, e).remedy; strings.Contains(got, "https://") {
		t.Errorf("another server's link is told: %q", got)
	}
}

// TestWordsNameTheHostOfTheApp checks a GitHub App of a company's own GitHub, for which the
// texts must not mention github.com.
func TestWordsNameTheHostOfTheApp(t *testing.T) {
	for _, p := range everyProblem() {
		got := explain(space.Remote{URL: "https://github.example.org/ann/notes.git", Branch: "main", Kind: space.KindGitHub}, errorOf(p, "github.example.org"))
		if text := got.detail + " " + got.remedy; strings.Contains(text, "github.com") {
			t.Errorf("%s: %s", p, text)
		}
	}
	if got := explain(space.Remote{URL: "https://github.example.org/ann/notes.git", Kind: space.KindGitHub}, errorOf(transport.Forbidden, "")); !strings.Contains(got.remedy, "At github.example.org open Settings") {
		t.Error(got.remedy)
	}
}

// The page Git remote shows the changes that wait and the next attempt itself, and has the form
// of the remote below the remedy.
func TestRemediesForThePage(t *testing.T) {
	for _, p := range everyProblem() {
		for _, r := range []space.Remote{
			{URL: elsewhere, Branch: "main", Kind: space.KindToken}, {URL: elsewhere, Kind: space.KindNone}, {URL: "ssh://git@git.example/ann/notes", Kind: space.KindSSH},
			{URL: atGitHub, Branch: "main", Kind: space.KindToken}, {URL: atGitHub, Branch: "main", Kind: space.KindGitHub}, {URL: "/srv/notes", Kind: space.KindNone},
		} {
			remedy := explain(r, errorOf(p, hostOf(r.URL))).remedy
			do, below := doOf(remedy), doBelow(remedy)
			if !strings.HasPrefix(remedy, do) || strings.Contains(do, "Meanwhile") || do == "" && remedy != keptByApp {
				t.Errorf("%s: %q of %q", p, do, remedy)
			}
			if strings.Contains(below, "Git remote") || strings.Contains(below, "space remote set") && p != transport.BlockedAddress || strings.Contains(do, setRemote) != strings.Contains(below, " below") {
				t.Errorf("%s: %q", p, below)
			}
		}
	}
}
