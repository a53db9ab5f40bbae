package server

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"satchel/auth/github/githubtest"
	"satchel/auth/mail/mailtest"
	"satchel/auth/oidc/oidctest"
	"satchel/internal/config"
	"satchel/internal/service"
)

// signedIn presses a way to sign in at the provider whose stand-in browse follows
// the redirect, and returns the page that the person comes back to.
func (b *browser) signedIn(r *running, name string, browse func(location string) (url.Values, error)) shown {
	b.t.Helper()
	at := b.open(r.issuer + "/signin/" + name + "?return=/account")
	if at.away == nil {
		b.t.Fatalf("%s (%d) leads to no provider:\n%s", at.url, at.status, at.text)
	}
	q, err := browse(at.away.String())
	if err != nil {
		b.t.Fatal(err)
	}
	return b.open(r.issuer + "/signin/" + name + "/callback?" + q.Encode())
}

// What the configuration names to sign in with lets in whom the allow list names,
// and nobody else; who was removed stays out.
func TestWaysToSignIn(t *testing.T) {
	id, hub, post := oidctest.New(oidctest.Options{ClientSecret: "oidc-secret"}), githubtest.New(githubtest.Options{}), mailtest.New(mailtest.Options{})
	defer id.Close()
	defer hub.Close()
	defer post.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(hub.ClientSecret()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := settings(t)
	a := &cfg.Auth
	a.Rate = 1e6
	a.AllowDomains, a.AllowGitHubOrgs = []string{"example.com"}, []string{"acme"}
	a.OIDC.URL, a.OIDC.ClientID, a.OIDC.ClientSecret = id.URL, "satchel", "oidc-secret"
	a.GitHub.URL, a.GitHub.ClientID, a.GitHub.ClientSecret = hub.URL, hub.ClientID(), config.Secret("file:"+secret)
	a.Mail.URL, a.Mail.From = post.URL(), "Satchel <satchel@example.com>"
	r := boot(t, cfg)
	door := newFrontDoor(t, r.listener.Addr().String(), r.issuer)

	ada := oidctest.Person{Subject: "1", Email: "ada@example.com", Verified: true, Name: "Ada"}
	id.SignIn(ada)
	if page := newBrowser(t, r.issuer, door).signedIn(r, "oidc", id.Browse); page.url.Path != "/account" || !strings.Contains(page.text, "ada") {
		t.Errorf("by the issuer: %s (%d)\n%s", page.url, page.status, page.text)
	}
	id.SignIn(oidctest.Person{Subject: "2", Email: "eve@example.com", Verified: false, Name: "Eve"})
	if page := newBrowser(t, r.issuer, door).signedIn(r, "oidc", id.Browse); page.status != http.StatusForbidden {
		t.Errorf("ATTACK, an address that nobody verified: %s (%d)", page.url, page.status)
	}
	hub.SignIn(githubtest.Person{ID: 7, Login: "Bob", Orgs: []githubtest.Membership{{Org: "acme", State: "active"}}})
	if page := newBrowser(t, r.issuer, door).signedIn(r, "github", hub.Browse); page.url.Path != "/account" || !strings.Contains(page.text, "bob") {
		t.Errorf("by GitHub: %s (%d)\n%s", page.url, page.status, page.text)
	}
	hub.SignIn(githubtest.Person{ID: 8, Login: "mallory", Orgs: []githubtest.Membership{{Org: "acme", State: "pending"}}})
	if page := newBrowser(t, r.issuer, door).signedIn(r, "github", hub.Browse); page.status != http.StatusForbidden {
		t.Errorf("ATTACK, a member whom nobody confirmed: %s (%d)", page.url, page.status)
	}
	if good, _ := hub.Tokens(); good != 0 {
		t.Errorf("%d tokens of GitHub are good still", good)
	}

	by := newBrowser(t, r.issuer, door)
	form := by.open(r.issuer + "/signin")
	for f := range elements(form.body, "form") {
		if attr(f, "action") != "/signin/mail" {
			continue
		}
		fields, _ := formOf(f)
		fields.Set("email", "Ada@Example.com")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.issuer+"/signin/mail", strings.NewReader(fields.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", r.issuer)
		by.do(req)
	}
	m, ok := post.Wait(1, t.Context().Done())
	if !ok {
		t.Fatal("no mail came")
	}
	link := regexp.MustCompile(r.issuer + `/signin/link/satchel_ll_[\w-]+`).FindString(strings.ReplaceAll(m.Raw, "=\r\n", ""))
	if page := by.press(by.open(link), signInButton); page.status != http.StatusOK || !strings.Contains(by.open(r.issuer+"/account").text, "ada") {
		t.Errorf("by mail: %s (%d)\n%s", page.url, page.status, m.Raw)
	}

	// ATTACK: whom an admin removed signs in again, since the allow list has them.
	removeUser(t, r.Service, "ada")
	id.SignIn(ada)
	if page := newBrowser(t, r.issuer, door).signedIn(r, "oidc", id.Browse); page.status != http.StatusForbidden {
		t.Errorf("who was removed is in again: %s (%d)", page.url, page.status)
	}
	id.SignIn(oidctest.Person{Subject: "3", Email: "ADA@example.com", Verified: true})
	if page := newBrowser(t, r.issuer, door).signedIn(r, "oidc", id.Browse); page.status != http.StatusForbidden {
		t.Errorf("who was removed is in again by another account with their address: %s (%d)", page.url, page.status)
	}
	// An invitation is an admin's word that they may.
	inv, err := r.Service.InviteToServer(t.Context(), service.Operator(), service.InviteToServerInput{})
	if err != nil {
		t.Fatal(err)
	}
	id.SignIn(ada)
	again := newBrowser(t, r.issuer, door)
	page := again.open(inv.URL)
	for f := range elements(page.body, "form") {
		if fields, buttons := formOf(f); len(buttons) > 0 && fields.Has("name") {
			fields.Set("name", "ada-again")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, inv.URL, strings.NewReader(fields.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", r.issuer)
			page = again.do(req)
			break
		}
	}
	if page.url.Path != "/welcome" {
		t.Errorf("with an invitation: %s (%d)\n%s", page.url, page.status, page.text)
	}
}
