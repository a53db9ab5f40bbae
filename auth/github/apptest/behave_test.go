package apptest_test

import (
	"net/http"
	"testing"
	"time"

	"satchel/auth/github/apptest"
)

func TestMisbehavesAsItIsTold(t *testing.T) {
	w := newWorld(t)
	w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada"})
	ada := w.UserToken("satchel", "ada")
	for name, c := range map[string]struct {
		b      apptest.Behaviour
		status int
	}{
		"a good day":        {apptest.Behaviour{}, 200},
		"down":              {apptest.Behaviour{Down: true}, 503},
		"status of a path":  {apptest.Behaviour{Status: map[string]int{"/user": 502}, Message: "x"}, 502},
		"status of many":    {apptest.Behaviour{Status: map[string]int{"/us*": 429}, Header: map[string]http.Header{"/user": {"Retry-After": {"7"}}}}, 429},
		"of another path":   {apptest.Behaviour{Status: map[string]int{"/app": 502}}, 200},
		"body that is none": {apptest.Behaviour{Body: map[string]string{"/user": "<html>"}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w.Behave(c.b)
			status, header, body := w.raw("GET", "/user", ada, nil)
			if status != c.status || (c.status == 429) != (header.Get("Retry-After") == "7") || c.b.Body != nil && string(body) != "<html>" {
				t.Error(status, header, string(body))
			}
		})
	}
	w.Behave(apptest.Behaviour{TokenError: "bad_verification_code"})
	if v := w.exchange("x", "y", nil); v["error"] != "bad_verification_code" {
		t.Error(v)
	}
	if n := w.Count("GET", "/user"); n != 6 {
		t.Error(n)
	}
	stall := make(chan struct{})
	w.Behave(apptest.Behaviour{Stall: stall})
	done := make(chan int)
	go func() {
		status, _, _ := w.raw("GET", "/user", ada, nil)
		done <- status
	}()
	close(stall)
	if status := <-done; status != 200 {
		t.Error(status)
	}
}

// TestTheWorldChanges: who moves, is renamed or goes away takes along what GitHub
// would take.
func TestTheWorldChanges(t *testing.T) {
	w := newWorld(t)
	mine := w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada"})
	token, bobs := w.token(mine, w.notes), w.UserToken("satchel", "bob")
	id := int64(w.get(t, "/users/bob", token)["id"].(float64))

	w.RenameAccount("bob", "robert")
	if v := w.get(t, "/user/"+number(id), token); v["login"] != "robert" {
		t.Error(v)
	}
	w.SetPermission("ada/notes", "robert", "maintain")
	if v := w.get(t, "/repos/ada/notes/collaborators/robert/permission", token); v["permission"] != "write" || v["role_name"] != "maintain" {
		t.Error(v)
	}
	w.SetRole("acme", "robert", "")
	if v := w.get(t, "/user/installations", bobs); v["total_count"] != 1.0 {
		t.Error("a collaborator does not see the installation:", v)
	}
	w.DeletePerson("robert")
	for path, credential := range map[string]string{"/user/" + number(id): token, "/user": bobs} {
		if status, v := w.ask("GET", path, credential, nil); status != 404 && status != 401 {
			t.Error(path, status, v)
		}
	}
	w.TransferRepository("ada/notes", "acme")
	if status, _ := w.ask("GET", "/repositories/"+number(w.notes), token, nil); status != 404 {
		t.Error("a repository that left is reached:", status)
	}
	w.DeleteRepository("ada/diary")
	w.Advance(time.Minute)
	if status, v := w.ask("POST", "/app/installations/"+number(mine)+"/access_tokens", w.jwt(object{"exp": time.Now().Add(6 * time.Minute).Unix()}), object{"repository_ids": []int64{w.diary}}); status != 422 {
		t.Error(status, v)
	}
	w.DeleteApp("satchel")
	if status, _ := w.ask("GET", "/app", w.jwt(object{"exp": time.Now().Add(6 * time.Minute).Unix()}), nil); status != 401 {
		t.Error(status)
	}
}

func (w *world) get(t *testing.T, path, credential string) object {
	t.Helper()
	status, v := w.ask("GET", path, credential, nil)
	if status != 200 {
		t.Fatal(path, status, v)
	}
	return v
}
