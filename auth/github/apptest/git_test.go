package apptest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/auth/github/apptest"
)

func TestGitTakesTheTokenForThatRepositoryAlone(t *testing.T) {
	w := newWorld(t)
	mine := w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada"})
	mint := func(body any) string {
		status, v := w.ask("POST", "/app/installations/"+number(mine)+"/access_tokens", w.jwt(nil), body)
		if status != http.StatusCreated {
			t.Fatal(status, v)
		}
		return v["token"].(string)
	}
	contents := object{"contents": "write", "metadata": "read"}
	notes := w.token(mine, w.notes)
	dir := w.commit("ada/notes", notes, "a.md", "a")
	push := func(token string) (string, error) { return w.git(dir, token, "push") }
	for name, c := range map[string]struct {
		token     string
		before    func()
		after     func()
		says      string
		violation bool
	}{
		"no token":                      {token: "", says: "Authentication failed"},
		"made-up token":                 {token: "ghs_1_a.b.c", says: "Password authentication is not supported"},
		"token for another repository":  {token: w.token(mine, w.diary), says: "Repository not found."},
		"token for all repositories":    {token: mint(object{"permissions": contents}), says: "one repository alone", violation: true},
		"token for two repositories":    {token: mint(object{"permissions": contents, "repository_ids": []int64{w.notes, w.diary}}), says: "one repository alone", violation: true},
		"token of a person":             {token: w.UserToken("satchel", "ada"), says: "one repository alone", violation: true},
		"token that may only read":      {token: mint(object{"permissions": object{"contents": "read"}, "repository_ids": []int64{w.notes}}), says: "Write access to repository not granted."},
		"suspended installation":        {token: notes, before: func() { w.Suspend(mine) }, after: func() { w.Unsuspend(mine) }, says: "This installation has been suspended"},
		"archived repository":           {token: notes, before: func() { w.Archive("ada/notes", true) }, after: func() { w.Archive("ada/notes", false) }, says: "This repository was archived so it is read-only."},
		"repository left the selection": {token: notes, before: func() { w.Choose(mine, "ada/diary") }, after: func() { w.Choose(mine) }, says: "Repository not found."},
		"push is refused by a rule":     {token: notes, before: func() { w.Refuse("ada/notes", "push declined due to repository rule violations") }, after: func() { w.Refuse("ada/notes", "") }, says: "[remote rejected] main -> main (push declined due to repository rule violations)"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.before != nil {
				c.before()
				defer c.after()
			}
			out, err := push(c.token)
			if err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v: no %q in\n%s", err, c.says, out)
			}
			if strings.Contains(out, "ghs_") || strings.Contains(out, "ghu_") {
				t.Error("a token is shown")
			}
			if violated := len(w.Violations()) > 0; violated != c.violation {
				t.Error(w.Violations())
			}
			w.ForgetViolations()
		})
	}
	if _, ok := w.File("ada/notes", "a.md"); ok {
		t.Error("something was pushed")
	}

	t.Run("renamed and transferred repositories lead on", func(t *testing.T) {
		w.RenameRepository("ada/notes", "journal")
		if out, err := push(notes); err != nil {
			t.Fatal(err, out)
		}
		if got, _ := w.File("ada/journal", "a.md"); got != "a" {
			t.Errorf("%q", got)
		}
	})
	t.Run("expired", func(t *testing.T) {
		w.Advance(time.Hour)
		if out, err := push(notes); err == nil {
			t.Error(out)
		}
	})
}

func TestWorkflowsNeedTheirPermission(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		w := newWorld(t, func(m object) {
			if allowed {
				m["default_permissions"] = object{"contents": "write", "workflows": "write"}
			}
		})
		mine := w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada"})
		token := w.token(mine, w.notes)
		dir := w.commit("ada/notes", token, ".github/workflows/ci.yml", "on: push\n")
		out, err := w.git(dir, token, "push")
		const reason = "(refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission)"
		// The token is for contents alone in either case.
		if err == nil || !strings.Contains(out, reason) {
			t.Error(err, out)
		}
		if out, err := w.git(dir, token, "push", "origin", "main~1:refs/heads/other"); err != nil {
			t.Error("another branch:", out)
		}
		if out, err := w.git(dir, token, "push", "origin", ":refs/heads/other"); err != nil {
			t.Error("a branch's end:", out)
		}
	}
}

func TestWebhooks(t *testing.T) {
	got := make(chan *http.Request, 20)
	receiver := receive(t, got)
	w := newWorld(t, func(m object) { m["hook_attributes"] = object{"url": receiver} })
	id := w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada", Repositories: []string{"ada/notes"}})
	w.Choose(id, "ada/diary")
	w.Suspend(id)
	w.Unsuspend(id)
	w.Push("ada/diary", map[string]string{"a.md": "a"})
	w.Push("ada/notes", map[string]string{"a.md": "a"}) // not among the installation's
	w.RenameRepository("ada/diary", "journal")
	w.RenameAccount("ada", "ada2")
	w.Deauthorize("satchel", "bob")
	w.Uninstall(id)
	w.Idle()
	var events []string
	for _, d := range w.Deliveries() {
		var v struct{ Action string }
		if err := json.Unmarshal(d.Body, &v); err != nil {
			t.Fatal(err)
		}
		events = append(events, strings.TrimSuffix(d.Event+"."+v.Action, "."))
		if d.Status != http.StatusAccepted || d.Signature != apptest.Sign(w.app.Webhook, d.Body) || d.ID == "" {
			t.Errorf("%+v", d)
		}
	}
	want := "installation.created installation_repositories.removed installation_repositories.added installation.suspend " +
		"installation.unsuspend push repository.renamed installation_target.renamed github_app_authorization.revoked installation.deleted"
	if strings.Join(events, " ") != want {
		t.Error(events)
	}
	if len(got) != len(events) {
		t.Error(len(got))
	}
	d := w.Deliveries()[0]
	d.Signature = "sha256=00"
	if status, _, err := w.Deliver(d); err != nil || status != http.StatusAccepted {
		t.Error(status, err)
	}
}
