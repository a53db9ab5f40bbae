package sandboxtest

import (
	"fmt"
	"slices"
	"strings"

	"satchel/internal/space"
)

// updateChecks are about commits of others, such as the merge of a remote, that
// reach a sandbox while it runs.
var updateChecks = []check{
	{name: "a large commit from outside reaches a live sandbox whole", real: true, run: func(e *exercise) {
		e.sh("mkdir -p old/{1..5}; for i in old/*; do for j in {1..100}; do echo $j > $i/$j; done; done")
		change := map[space.Path]*Entry{
			"docs/a.md": {Mode: space.Executable, Content: "a\n"}, "bin/tool": {Content: "#!/bin/sh\necho tool\n"},
			"link": {Content: "a file now\n"}, "readme.md": {Mode: space.Symlink, Content: "docs/b.md"},
			"deep/x/y/z.t": nil, "old": {Content: "a file now\n"},
		}
		for i := range 5 {
			for j := range 100 {
				change[space.Path(fmt.Sprintf("old/%d/%d", i+1, j+1))] = nil
			}
		}
		for i := range 600 {
			change[space.Path(fmt.Sprintf("fresh/%d/%d.md", i%7, i))] = &Entry{Content: fmt.Sprintf("%d\n", i)}
		}
		e.Store.Put(e.space, change)
		r := e.sh(`cat old link readme.md; test -x docs/a.md && ! test -x bin/tool && ! test -e deep && echo modes; find fresh -type f | wc -l; cat fresh/*/* | sort -n | tail -1`)
		if want := "a file now\na file now\nb\nmodes\n600\n599\n"; r.Stdout.Text != want {
			e.Errorf("inside: %q, want %q", r.Stdout.Text, want)
		}
		if len(r.Applied) != 1106 || len(r.Commits) != 0 || len(r.Notes) != 0 || r.Generation != 1 {
			e.Errorf("%d applied, commits %q, notes %q, generation %d", len(r.Applied), paths(r.Commits), r.Notes, r.Generation)
		}
	}},
	{name: "a job is not disturbed by a commit from outside", real: true, run: func(e *exercise) {
		e.sh("echo one > docs/log; echo old > docs/read")
		job := e.request(`cd docs; exec 3<read; exec 4>>log; : > ../ready; until [ -e ../go ]; do sleep 0.02; done
			cat <&3 > ../seen || exit 4; echo two >&4 || exit 5; echo late > late || exit 6`)
		job.Background = true
		e.do(job)
		for e.exec("test -e ready").ExitCode != 0 {
		}
		e.Store.Put(e.space, map[space.Path]*Entry{
			"docs/a.md": nil, "docs/b.md": nil, "docs/read": nil, "docs/log": {Content: "theirs\n"},
			"readme.md": {Content: "newer\n"}, "deep/x/y/z.t": nil,
		})
		r := e.sh("cat readme.md; ls docs; test -e deep || echo gone")
		if !strings.HasPrefix(r.Stdout.Text, "newer\n") || strings.Contains(r.Stdout.Text, "read\n") || !strings.HasSuffix(r.Stdout.Text, "gone\n") {
			e.Errorf("inside: %q", r.Stdout.Text)
		}
		e.sh("echo > go")
		e.Store.Wait(e.ctx, e.space, func(t Tree) bool { return t["docs/late"].Content == "late\n" })
		tree := e.Store.Tree(e.space)
		if tree["seen"].Content != "old\n" {
			e.Errorf("the job read %q", tree["seen"].Content)
		}
		if tree["docs/log"].Content != "theirs\n" || tree["docs/log.conflict"].Content != "one\ntwo\n" {
			e.Errorf("theirs is %q, and the job's is %q", tree["docs/log"].Content, tree["docs/log.conflict"].Content)
		}
	}},
	{name: "a directory that a job works in can be deleted and replaced from outside", real: true, run: func(e *exercise) {
		job := e.request(`cd deep/x/y; : > ../../../ready; until [ -e ../../../go ]; do sleep 0.02; done; echo late > late || exit 6`)
		job.Background = true
		e.do(job)
		for e.exec("test -e ready").ExitCode != 0 {
		}
		e.Store.Put(e.space, map[space.Path]*Entry{"deep/x/y/z.t": nil, "deep/x/y": {Content: "a file\n"}})
		e.sh("test -d deep/x/y && echo > go")
		e.Store.Wait(e.ctx, e.space, func(t Tree) bool {
			for p, f := range t {
				if strings.HasSuffix(string(p), "late") && f.Content == "late\n" {
					return true
				}
			}
			return false
		})
		if got := e.Store.Tree(e.space)["deep/x/y"]; got.Content != "a file\n" {
			e.Errorf("theirs is %+v", got)
		}
	}},
	{name: "commits from outside while commands run are merged, or both versions kept", run: func(e *exercise) {
		first := e.started(e.request("echo mine > docs/a.md; echo mine > mine; echo started; until [ -e go ]; do sleep 0.02; done; echo after > after"))
		e.Store.Put(e.space, map[space.Path]*Entry{"docs/a.md": {Content: "theirs\n"}, "go": {Content: "go\n"}, "theirs": {Content: "theirs\n"}})
		second := e.sh("true")
		o := e.wait(first)
		if o.err != nil || o.res.ExitCode != 0 {
			e.Errorf("the first: %+v, %v", o.res, o.err)
		}
		// The first command to end reports the conflict.
		reported := append(second.Conflicts, o.res.Conflicts...)
		if want := (space.Conflict{Path: "docs/a.md", Kept: "docs/a.md.conflict"}); !slices.Equal(reported, []space.Conflict{want}) {
			e.Errorf("conflicts %v", reported)
		}
		r := e.sh("cat docs/a.md docs/a.md.conflict mine theirs after")
		if want := "theirs\nmine\nmine\ntheirs\nafter\n"; r.Stdout.Text != want {
			e.Errorf("inside: %q, want %q", r.Stdout.Text, want)
		}
	}},
}
