package sandboxtest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
)

// treeChecks are about files: what is committed, what is refused, and which changes of others reach
// the sandbox.
var treeChecks = []check{
	{name: "every kind of change is committed as it is", real: true, run: func(e *exercise) {
		for _, c := range []struct {
			command string
			want    func(Tree)
		}{
			{"echo new > new.md", func(t Tree) { t["new.md"] = Entry{Content: "new\n"} }},
			{"echo more >> new.md", func(t Tree) { t["new.md"] = Entry{Content: "new\nmore\n"} }},
			{": > empty", func(t Tree) { t["empty"] = Entry{} }},
			{"chmod +x new.md", func(t Tree) { t["new.md"] = Entry{space.Executable, "new\nmore\n"} }},
			{"chmod -x new.md", func(t Tree) { t["new.md"] = Entry{Content: "new\nmore\n"} }},
			{"touch -d 2001-02-03 readme.md", func(Tree) {}},
			{"chmod +x readme.md", func(t Tree) { t["readme.md"] = Entry{space.Executable, "hello\n"} }},
			{"rm -f bin/tool; echo plain > bin/tool", func(t Tree) { t["bin/tool"] = Entry{Content: "plain\n"} }},
			{"rm new.md", func(t Tree) { delete(t, "new.md") }},
			{"mv docs/a.md docs/c.md", func(t Tree) { t["docs/c.md"] = t["docs/a.md"]; delete(t, "docs/a.md") }},
			{"ln -s docs/c.md here", func(t Tree) { t["here"] = Entry{space.Symlink, "docs/c.md"} }},
			{"ln -sfn docs/b.md here", func(t Tree) { t["here"] = Entry{space.Symlink, "docs/b.md"} }},
			{"rm here; echo file > here", func(t Tree) { t["here"] = Entry{Content: "file\n"} }},
			{"rm here; mkdir here; echo under > here/under", func(t Tree) { delete(t, "here"); t["here/under"] = Entry{Content: "under\n"} }},
			{"rm readme.md; mkdir readme.md; echo under > readme.md/under", func(t Tree) {
				delete(t, "readme.md")
				t["readme.md/under"] = Entry{Content: "under\n"}
			}},
			{"rm -r deep; echo flat > deep", func(t Tree) { delete(t, "deep/x/y/z.t"); t["deep"] = Entry{Content: "flat\n"} }},
			{"mv docs papers", func(t Tree) {
				t["papers/b.md"], t["papers/c.md"] = t["docs/b.md"], t["docs/c.md"]
				delete(t, "docs/b.md")
				delete(t, "docs/c.md")
			}},
			{"rm -r papers; mkdir papers; echo d > papers/d.md", func(t Tree) {
				delete(t, "papers/b.md")
				delete(t, "papers/c.md")
				t["papers/d.md"] = Entry{Content: "d\n"}
			}},
			{"rm -r bin; mkdir bin; echo other > bin/other", func(t Tree) { delete(t, "bin/tool"); t["bin/other"] = Entry{Content: "other\n"} }},
			{"rm -rf papers bin here", func(t Tree) { delete(t, "papers/d.md"); delete(t, "bin/other"); delete(t, "here/under") }},
			{"mkdir nothing", func(Tree) {}},
			{"echo 1 > $'odd \"name\\' ü'", func(t Tree) { t["odd \"name' ü"] = Entry{Content: "1\n"} }},
		} {
			before := e.Store.Tree(e.space)
			want := maps.Clone(before)
			c.want(want)
			r := e.sh(c.command)
			if got := e.Store.Tree(e.space); !maps.Equal(got, want) {
				e.Fatalf("after %s the space holds\n%v\nwant\n%v", c.command, got, want)
			}
			if len(r.Refused)+len(r.Conflicts) > 0 {
				e.Errorf("%s: refused %v, conflicts %v", c.command, r.Refused, r.Conflicts)
			}
			changed := !maps.Equal(before, want)
			if len(r.Commits) > 1 || changed != (len(r.Commits) == 1) {
				e.Errorf("%s: commits %+v", c.command, r.Commits)
			}
			if changed {
				m := r.Commits[0]
				if q := e.request(c.command); m.Message != q.Comment || m.Author != q.Author || m.Tool != q.Tool || m.Client != q.Client {
					e.Errorf("%s: commit says %+v", c.command, m)
				}
			}
		}
	}},
	{name: "what a commit did not take is named and the rest is committed", options: func(o *sandbox.Options) {
		o.MaxFile = 1000
	}, run: func(e *exercise) {
		r := e.sh(`mkdir -p x/.git/hooks y; echo a > x/.git/config; echo b > x/.git/hooks/post; echo c > x/.GIT2
			ln -s /etc/passwd y/abs; ln -s ../../out y/out; mkfifo y/fifo; head -c 2000 /dev/zero > y/large; printf x > $'y/new\nline'; echo ok > y/ok`)
		var names []string
		for _, f := range r.Refused {
			names = append(names, f.Path)
			if f.Why == "" || f.Err == nil {
				e.Errorf("%q is refused without a reason", f.Path)
			}
		}
		want := []string{"x/.git", "y/abs", "y/fifo", "y/large", "y/new\nline", "y/out"}
		if slices.Sort(names); !slices.Equal(names, want) {
			e.Errorf("refused %q, want %q", names, want)
		}
		if i := slices.Index(names, "x/.git"); i >= 0 && !strings.Contains(r.Refused[i].Why, "2 files") {
			e.Errorf("the summary of .git: %q", r.Refused[i].Why)
		}
		if got := paths(r.Commits); !slices.Equal(got, []space.Path{"x/.GIT2", "y/ok"}) {
			e.Errorf("committed %q", got)
		}
		r = e.sh("true")
		if len(r.Refused) != 0 {
			e.Errorf("told again: %v", r.Refused)
		}
		e.wantNote(r, "6 paths")
		r = e.sh("head -c 500 /dev/zero > y/large; rm -r x/.git y/abs y/out y/fifo y/new*; true")
		if len(r.Refused) != 0 || e.Store.Tree(e.space)["y/large"].Content != strings.Repeat("\x00", 500) {
			e.Errorf("after mending: %+v", r)
		}
		if r = e.sh("true"); len(r.Notes) != 0 {
			e.Errorf("notes after mending: %q", r.Notes)
		}
	}},
	{name: "changes that could not be committed are tried again", run: func(e *exercise) {
		e.sh("true")
		e.Store.FailCommit = func(space.ChangeSet) error { return errors.New("the disk is full") }
		r := e.exec("echo one > one")
		if fault.CodeOf(r.NotSaved) != fault.Unavailable || len(r.Commits) != 0 {
			e.Errorf("not saved: %v, commits %v", r.NotSaved, r.Commits)
		}
		e.Store.FailCommit = nil
		if r := e.sh("true"); len(r.Commits) != 1 {
			e.Errorf("commits %v", r.Commits)
		}
		e.wantFile("one", &Entry{Content: "one\n"})
	}},
	{name: "an entry that the committer refuses is tried again", run: func(e *exercise) {
		refused := fault.New(fault.Invalid, "It holds a secret.")
		e.Store.RefusePath = func(p string) error {
			if p == "secret" {
				return refused
			}
			return nil
		}
		r := e.sh("echo s > secret; echo o > open")
		if len(r.Refused) != 1 || r.Refused[0].Path != "secret" || !slices.Equal(paths(r.Commits), []space.Path{"open"}) {
			e.Errorf("%+v", r)
		}
		if r = e.sh("true"); len(r.Refused) != 0 {
			e.Errorf("told again: %v", r.Refused)
		}
		e.wantNote(r, "secret")
		e.Store.RefusePath = nil
		if r = e.sh("true"); len(r.Notes) != 0 || !slices.Equal(paths(r.Commits), []space.Path{"secret"}) {
			e.Errorf("%+v", r)
		}
	}},
	{name: "what others changed is there before the next command", real: true, run: func(e *exercise) {
		e.sh("true")
		e.Store.Put(e.space, map[space.Path]*Entry{
			"readme.md":      {Content: "newer\n"},
			"docs/a.md":      nil,
			"web/page":       {Mode: space.Executable, Content: "echo page\n"},
			"link":           {Mode: space.Symlink, Content: "docs/b.md"},
			"deep/x/y/z.t":   nil,
			"deep/x":         {Content: "a file now\n"},
			"bin/tool":       nil,
			"bin/tool/inner": {Content: "a directory now\n"},
		})
		r := e.sh("cat readme.md link deep/x bin/tool/inner; ls docs; web/page")
		if want := "newer\nb\na file now\na directory now\nb.md\npage\n"; r.Stdout.Text != want && strings.Contains(r.Stdout.Text, "newer") {
			e.Errorf("%q, want %q", r.Stdout.Text, want)
		}
		if len(r.Applied) != 8 || len(r.Commits) != 0 || len(r.Notes) != 0 {
			e.Errorf("applied %v, commits %v, notes %q", r.Applied, r.Commits, r.Notes)
		}
		r = e.sh("echo edit >> readme.md; rm -r web; echo again > docs/a.md")
		if len(r.Conflicts) != 0 || len(r.Commits) != 1 {
			e.Errorf("%+v", r)
		}
		e.wantFile("readme.md", &Entry{Content: "newer\nedit\n"})
		e.wantFile("web/page", nil)
		e.wantFile("docs/a.md", &Entry{Content: "again\n"})
	}},
	{name: "two changes of one file are both kept, in the space and inside", run: func(e *exercise) {
		e.sh("true")
		e.Store.FailCommit = func(space.ChangeSet) error { return errors.New("not now") }
		e.exec("echo mine > readme.md; rm docs/a.md")
		e.Store.FailCommit = nil
		e.Store.Put(e.space, map[space.Path]*Entry{"readme.md": {Content: "theirs\n"}, "docs/a.md": {Content: "edited\n"}})
		r := e.sh("cat readme.md")
		if r.Stdout.Text != "mine\n" {
			e.Errorf("the command saw %q", r.Stdout.Text)
		}
		want := []space.Conflict{{Path: "docs/a.md"}, {Path: "readme.md", Kept: "readme.md.conflict"}}
		if !slices.Equal(r.Conflicts, want) {
			e.Errorf("conflicts %v, want %v", r.Conflicts, want)
		}
		e.wantFile("readme.md", &Entry{Content: "theirs\n"})
		e.wantFile("readme.md.conflict", &Entry{Content: "mine\n"})
		e.wantFile("docs/a.md", &Entry{Content: "edited\n"})
		if r := e.sh("cat readme.md readme.md.conflict docs/a.md"); r.Stdout.Text != "theirs\nmine\nedited\n" || len(r.Commits) != 0 {
			e.Errorf("inside: %q, commits %v", r.Stdout.Text, r.Commits)
		}
		if r := e.sh("echo merged > readme.md; rm readme.md.conflict"); len(r.Conflicts) != 0 || len(r.Commits) != 1 {
			e.Errorf("after merging: %+v", r)
		}
		e.wantFile("readme.md", &Entry{Content: "merged\n"})
	}},
	{name: "both versions reach a command that still runs", run: func(e *exercise) {
		first := e.started(e.request("echo mine > readme.md; echo started; until grep -q theirs readme.md && [ -s readme.md.conflict ]; do sleep 0.02; done; cat readme.md.conflict"))
		e.Store.Put(e.space, map[space.Path]*Entry{"readme.md": {Content: "theirs\n"}})
		second := e.sh("true")
		if want := (space.Conflict{Path: "readme.md", Kept: "readme.md.conflict"}); !slices.Equal(second.Conflicts, []space.Conflict{want}) {
			e.Errorf("conflicts %v", second.Conflicts)
		}
		if o := e.wait(first); o.err != nil || o.res.Stdout.Text != "started\nmine\n" {
			e.Errorf("the first saw %q, %v", o.res.Stdout.Text, o.err)
		}
		e.wantFile("readme.md", &Entry{Content: "theirs\n"})
	}},
	{name: "each of two commands at once names the commits since it began", run: func(e *exercise) {
		first := e.started(e.request("echo a > a; echo started; until [ -e go ]; do sleep 0.02; done; echo b > b"))
		second := e.sh("echo x > go")
		if got := paths(second.Commits); !slices.Contains(got, "a") || !slices.Contains(got, "go") {
			e.Errorf("the second command names %q", got)
		}
		o := e.wait(first)
		if o.err != nil {
			e.Fatal(o.err)
		}
		if got := paths(o.res.Commits); !slices.Equal(got, []space.Path{"a", "b", "go"}) {
			e.Errorf("the first command names %q", got)
		}
		if r := e.sh("echo c > c"); !slices.Equal(paths(r.Commits), []space.Path{"c"}) {
			e.Errorf("a later command names %q", paths(r.Commits))
		}
	}},
	{name: "a tree of many files comes and goes whole", real: true, run: func(e *exercise) {
		before := e.Store.Tree(e.space)
		r := e.sh(`mkdir -p many/{1..20}; for i in many/*; do for j in {1..50}; do echo $j > $i/$j; done; done`)
		if n := len(paths(r.Commits)); n != 1000 {
			e.Errorf("%d files committed", n)
		}
		r = e.sh("mv many moved")
		if n := len(paths(r.Commits)); n != 2000 {
			e.Errorf("%d files in the commit of a rename", n)
		}
		e.sh("rm -r moved")
		e.wantTree(before)
	}},
	{name: "users of one space see each other's work, users of two do not", run: func(e *exercise) {
		other := *e
		other.user = "u_two"
		apart := *e
		apart.user, apart.space = "u_three", e.Store.Space(Tree{"readme.md": {Content: "apart\n"}})
		e.sh("echo mine > shared.md")
		if r := other.sh("cat shared.md; echo theirs >> shared.md"); r.Stdout.Text != "mine\n" {
			e.Errorf("the other sees %q", r.Stdout.Text)
		}
		if r := e.sh("cat shared.md"); r.Stdout.Text != "mine\ntheirs\n" {
			e.Errorf("the first sees %q", r.Stdout.Text)
		}
		if r := apart.exec("cat readme.md; cat shared.md"); r.Stdout.Text != "apart\n" || r.ExitCode == 0 {
			e.Errorf("the one apart sees %q", r.Stdout.Text)
		}
		if n := len(e.Runtime.Started()); n != 3 {
			e.Errorf("%d sandboxes", n)
		}
	}},
}
