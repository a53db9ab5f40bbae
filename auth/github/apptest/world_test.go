package apptest_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth/github/apptest"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a GitHub with three people. ada owns ada/notes (private) and acme. bob is a
// member of acme who may only read acme/wiki. mallory belongs to none of these.
type world struct {
	*apptest.Server
	t     *testing.T
	app   apptest.App
	notes int64
	diary int64
	wiki  int64
}

func manifest() object {
	return object{
		"name": "Satchel", "url": "http://satchel.test", "public": true, "redirect_url": "http://satchel.test/admin/github/created",
		"callback_urls": []string{"http://satchel.test/github/callback", "http://satchel.test/signin/github/callback"},
		"setup_url":     "http://satchel.test/github/setup", "setup_on_update": true,
		"hook_attributes":     object{"url": "http://127.0.0.1:1/github/webhook", "active": false},
		"default_permissions": object{"contents": "write", "metadata": "read"}, "default_events": []string{"push", "repository"},
	}
}

type object = map[string]any

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func newWorld(t *testing.T, change ...func(object)) *world {
	t.Helper()
	w := &world{Server: apptest.Start(t, apptest.Options{}), t: t}
	for _, p := range []string{"ada", "bob", "mallory"} {
		w.AddPerson(p)
	}
	w.AddOrg("acme", "read", map[string]string{"ada": "admin", "bob": "member"})
	w.notes = w.AddRepository(apptest.Repository{Owner: "ada", Name: "notes", Private: true})
	w.diary = w.AddRepository(apptest.Repository{Owner: "ada", Name: "diary", Private: true})
	w.wiki = w.AddRepository(apptest.Repository{Owner: "acme", Name: "wiki", Private: true})
	m := manifest()
	for _, f := range change {
		f(m)
	}
	w.app = w.AddApp("ada", encoded(m))
	return w
}

func (w *world) jwt(claims object) string {
	w.t.Helper()
	block, _ := pem.Decode([]byte(w.app.PrivateKey))
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	all := object{"iss": fmt.Sprint(w.app.ID), "iat": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(5 * time.Minute).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + b64(encoded(all))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		w.t.Fatal(err)
	}
	return text + "." + b64(signature)
}

// ask sends a request to the API, and returns the status and body of the answer.
func (w *world) ask(method, path, credential string, body any) (int, object) {
	w.t.Helper()
	status, _, text := w.raw(method, path, credential, body)
	var v object
	if len(text) > 0 && json.Unmarshal(text, &v) != nil {
		w.t.Fatalf("%s %s: %s", method, path, text)
	}
	return status, v
}

func (w *world) raw(method, path, credential string, body any) (int, http.Header, []byte) {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(encoded(body))
	}
	r, err := http.NewRequest(method, w.API()+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "test")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case strings.HasPrefix(credential, "Basic "):
		r.SetBasicAuth(w.app.ClientID, strings.TrimPrefix(credential, "Basic "))
	case credential != "":
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	resp, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, text
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// token returns a token of the installation for one repository.
func (w *world) token(installation, repository int64) string {
	w.t.Helper()
	status, v := w.ask("POST", fmt.Sprintf("/app/installations/%d/access_tokens", installation), w.jwt(nil),
		object{"repository_ids": []int64{repository}, "permissions": object{"contents": "write", "metadata": "read"}})
	if status != http.StatusCreated {
		w.t.Fatal(status, v)
	}
	return v["token"].(string)
}

// begin returns an authorization request with PKCE.
func (w *world) begin(change url.Values) (location, verifier string) {
	verifier = strings.Repeat("verifier", 8)
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {w.app.ClientID}, "redirect_uri": {"http://satchel.test/github/callback"}, "state": {"xyz"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for k, v := range change {
		q[k] = v
	}
	return w.URL + "/login/oauth/authorize?" + q.Encode(), verifier
}

// personToken returns a token of a person who authorizes the app.
func (w *world) personToken(login string) string {
	w.t.Helper()
	location, verifier := w.begin(nil)
	back, err := w.Authorize(login, location)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.exchange(back.Query().Get("code"), verifier, nil)["access_token"].(string)
}

func (w *world) exchange(code, verifier string, change url.Values) object {
	w.t.Helper()
	form := url.Values{
		"client_id": {w.app.ClientID}, "client_secret": {w.app.ClientSecret}, "code": {code}, "code_verifier": {verifier},
		"redirect_uri": {"http://satchel.test/github/callback"},
	}
	for k, v := range change {
		form[k] = v
	}
	r, err := http.NewRequest("POST", w.URL+"/login/oauth/access_token", strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var v object
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&v) != nil {
		w.t.Fatal(resp.Status)
	}
	return v
}

func (w *world) git(dir, token string, args ...string) (string, error) {
	cmd := testenv.Git(w.t, dir, args...)
	cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential.helper",
		"GIT_CONFIG_VALUE_0=!f() { echo username=x-access-token; echo password="+token+"; }; f")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commit returns a clone of a repository with a commit that is not pushed.
func (w *world) commit(repo, token, path, content string) (dir string) {
	w.t.Helper()
	dir = filepath.Join(w.t.TempDir(), "clone")
	if out, err := w.git("", token, "clone", w.URL+"/"+repo+".git", dir); err != nil {
		w.t.Fatal(out)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-m", "new"}} {
		if out, err := w.git(dir, token, args...); err != nil {
			w.t.Fatal(out)
		}
	}
	return dir
}
