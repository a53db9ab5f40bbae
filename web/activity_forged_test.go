package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/web"
)

// push makes a commit with plain git and fetches it as from a remote.
func (a *active) push(path, content, message string) space.CommitID {
	a.t.Helper()
	a.pass(time.Minute)
	repo := filepath.Join(a.dir, string(a.space.ID)+".git")
	date := fmt.Sprintf("%d +0000", a.clock().Unix())
	run := func(in string, args ...string) string {
		cmd := testenv.Git(a.t, repo, args...)
		cmd.Stdin = strings.NewReader(in)
		cmd.Env = append(cmd.Env, "GIT_DIR="+repo, "GIT_INDEX_FILE="+filepath.Join(a.dir, "index"),
			"GIT_AUTHOR_NAME=Mallory", "GIT_AUTHOR_EMAIL=m@x", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_NAME=Satchel", "GIT_COMMITTER_EMAIL=satchel@localhost", "GIT_COMMITTER_DATE="+date)
		out, err := cmd.Output()
		must(a.t, err)
		return strings.TrimSpace(string(out))
	}
	run("", "read-tree", "HEAD")
	run("", "update-index", "--add", "--cacheinfo", "100644,"+run(content, "hash-object", "-w", "--stdin")+","+path)
	c := space.CommitID(run(message, "commit-tree", "-p", "HEAD", run("", "write-tree")))
	_, err := a.git.Integrate(a.t.Context(), a.space.ID, c, space.Meta{Tool: "sync"})
	must(a.t, err)
	return c
}

// Attack: a pushed commit claims that it was made on the pages and undoes an AI's commit,
// so that nobody undoes that.
func TestAttackForgedTrailersHideNothing(t *testing.T) {
	for _, tool := range []string{"web-revert", "web", "web-undo", "import", "satchel"} {
		t.Run(tool, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			evil := a.by("claude-code", "Obey", "x.md", "EVIL\n")
			forged := a.push("y.md", "y\n", "Undo “Obey”\n\nThis undoes the commit "+evil.ID.Short()+".\n\nSatchel-Tool: "+tool+"\nSatchel-Client: browser\n")
			b := a.as(a.ada)
			list := b.get(a.in("activity"))
			checkPage(t, "activity", list)
			item := func(id space.CommitID) string {
				_, s, _ := strings.Cut(list.body, `id="c-`+string(id)+`"`)
				s, _, _ = strings.Cut(s, "\n</li>")
				return s
			}
			if s := item(evil.ID); strings.Contains(s, ">Undone<") || !strings.Contains(s, `action="`+a.in("revert")+`"`) {
				t.Error("the AI's commit is said to be undone")
			}
			_, s, _ := strings.Cut(list.body, `id="t-`+string(forged)+`"`)
			if s, _, _ = strings.Cut(s, "</li>"); strings.Contains(s, "in the browser") || strings.Contains(s, "by an import") || !strings.Contains(s, "<bdi>Mallory</bdi> <span class=\"hint\">with git (the message of the change claims otherwise)") {
				t.Error("the forged commit is believed: " + s)
			}
			if s := b.get(a.in("commits/%s", evil.ID)).body; strings.Contains(s, "undone since") || !strings.Contains(s, `action="`+a.in("revert?here")+`"`) {
				t.Error("its page says that the AI's commit is undone")
			}
			for _, page := range []string{"commits/" + string(forged), "history/y.md", "files/y.md"} {
				if s := b.get(a.in("%s", page)).body; strings.Contains(s, "in the browser") || strings.Contains(s, tool+"</bdi>") {
					t.Errorf("%s believes it", page)
				}
			}
			since := url.QueryEscape(a.clock().Add(-time.Hour).Format("2006-01-02T15:04"))
			if ids := commits(b.get(a.in("revert?client=claude-code&since=%s", since)).body); len(ids) != 1 {
				t.Errorf("of the client %d changes can be undone", len(ids))
			}
			// What was undone on the page says so, also after that.
			want(t, "revert", b.send(a.in("revert"), url.Values{"commit": {string(evil.ID)}}), http.StatusSeeOther)
			if list = b.get(a.in("activity")); !strings.Contains(item(evil.ID), ">Undone<") {
				t.Error("what was undone does not say so")
			}
		})
	}
}
