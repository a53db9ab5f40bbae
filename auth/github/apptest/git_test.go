package apptest_test

import (
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
		"token of a person":             {token: w.personToken("ada"), says: "one repository alone", violation: true},
		"token that may only read":      {token: mint(object{"permissions": object{"contents": "read"}, "repository_ids": []int64{w.notes}}), says: "Write access to repository not granted."},
		"suspended installation":        {token: notes, before: func() { w.Suspend(mine) }, after: func() { w.Unsuspend(mine) }, says: "This installation has been suspended"},
		"repository left the selection": {token: notes, before: func() { w.Choose(mine, "ada/diary") }, after: func() { w.Choose(mine) }, says: "Repository not found."},
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
