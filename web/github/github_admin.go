package github

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/web"
)

// appPage shows the GitHub App to an admin. It never contains a secret.
type appPage struct {
	App  auth.GitHubApp
	Made bool
	Just bool // the App was created just now
	// Org, ID and ClientID keep the input of a form, without the secrets.
	Org      string
	ID       string
	ClientID string
	Manual   bool // the form for an App that was created by hand is open
	// The following fields are addresses that an admin enters at GitHub to create an App by
	// hand.
	Homepage, Callback, Callback2, Setup, Webhook string
	First                                         *service.View // the space to connect next
}

// showApp handles GET /admin/github.
func (s *pages) showApp(v *web.Visit) error {
	return s.appForm(v, http.StatusOK, appPage{Just: v.R.URL.Query().Has("made")}, "", "")
}

func (s *pages) appForm(v *web.Visit, status int, body appPage, problem, field string) error {
	var err error
	if body.App, body.Made, err = s.App.App(v.R.Context()); err != nil {
		return err
	}
	body.App.Secrets = auth.GitHubSecrets{}
	body.Homepage, body.Callback, body.Callback2 = s.URL("/"), s.URL(app.PathCallback), s.URL("/signin/github/callback")
	body.Setup, body.Webhook = s.URL(app.PathSetup), s.URL(app.PathWebhook)
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Role == "owner" {
			body.First = &all[i]
			break
		}
	}
	title := "Create the GitHub App of this server"
	if body.Made {
		title = "The GitHub App of this server"
	}
	return s.Page(v, status, "githubapp", web.Page{Title: title, Current: "/admin", Styles: []string{"admin.css", "github.css"}, Script: true, Body: body, Problem: problem, Field: field})
}

// login matches the names of organizations at GitHub.
var login = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?$`)
})

// manifestPage is a form that the browser sends to GitHub automatically.
type manifestPage struct{ Action, Manifest, Host string }

// beginManifest handles POST /admin/github/manifest. It answers with a form that the browser
// posts to GitHub, with everything that GitHub needs to create the App.
func (s *pages) beginManifest(v *web.Visit) error {
	form := v.R.PostForm
	org := ""
	if form.Get("owner") == "org" {
		if org = strings.TrimSpace(form.Get("org")); !login().MatchString(org) {
			return s.appForm(v, http.StatusBadRequest, appPage{Org: web.Shorten(org, 80)}, "Enter the organization’s name as in its address on GitHub.", "org")
		}
	}
	if err := s.noApp(v); err != nil {
		return err
	}
	state, err := s.hint(v, flowManifest, "")
	if err != nil {
		return err
	}
	action, manifest, err := s.App.Manifest(state, app.NewApp{Organisation: org, Creates: form.Get("creates") == "1", Public: form.Get("public") == "1"})
	if err != nil {
		return err
	}
	u, err := url.Parse(action)
	if err != nil || !web.IsWeb(u) || u.Host == "" || strings.ContainsAny(u.Host, "'\"; ,*") {
		return fault.New(fault.Unavailable, "The address of GitHub in the configuration (auth.github.url) cannot be used.")
	}
	if q := u.Query(); q.Get("state") == "" {
		q.Set("state", state)
		u.RawQuery = q.Encode()
	}
	return s.Page(v, http.StatusOK, "githubmanifest", web.Page{
		Title: "Continue to GitHub", FormsTo: u.Scheme + "://" + u.Host, Scripts: []string{"github.js"}, Current: "/admin",
		Body: manifestPage{Action: u.String(), Manifest: string(manifest), Host: u.Host},
	})
}

// noApp returns a fault.Conflict if there is an App already. Another App would lose
// every repository that is connected through the first one.
func (s *pages) noApp(v *web.Visit) error {
	_, made, err := s.App.App(v.R.Context())
	if err == nil && made {
		return fault.New(fault.Conflict, "This server already has a GitHub App. Forget it first.")
	}
	return err
}

// finishManifest handles the admin's return from GitHub after GitHub has created the App.
// The request contains a code for the secrets of the App.
func (s *pages) finishManifest(v *web.Visit) error {
	_, ok, err := s.takeHint(v, flowManifest)
	if err != nil {
		return err
	}
	codes := v.R.URL.Query()["code"]
	if !ok || len(codes) != 1 || codes[0] == "" {
		return s.appForm(v, http.StatusBadRequest, appPage{},
			"Nothing was saved: the answer from GitHub was not requested in this browser, took more than an hour, or was already used. Start again. If an App was created on GitHub meanwhile, you can delete it there.", "")
	}
	_, err = s.App.Create(v.R.Context(), v.User.ID, codes[0])
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/admin/github?made")
	case fault.Internal:
		return err
	}
	return s.appForm(v, web.AsPage(err).Status, appPage{}, fault.PublicOf(err), "")
}

// enterApp handles POST /admin/github/enter, for an App that was created by hand.
func (s *pages) enterApp(v *web.Visit) error {
	form := v.R.PostForm
	body := appPage{ID: web.Shorten(form.Get("id"), 30), ClientID: web.Shorten(form.Get("client-id"), 100), Manual: true}
	id, err := strconv.ParseInt(strings.TrimSpace(form.Get("id")), 10, 64)
	problem, field := "", ""
	a := auth.GitHubApp{ID: id, ClientID: strings.TrimSpace(form.Get("client-id")), Secrets: auth.GitHubSecrets{
		ClientSecret: strings.TrimSpace(form.Get("client-secret")), PrivateKey: strings.TrimSpace(strings.ReplaceAll(form.Get("private-key"), "\r\n", "\n")) + "\n", Webhook: strings.TrimSpace(form.Get("webhook-secret")),
	}}
	switch {
	case err != nil || id <= 0:
		problem, field = "Enter the App ID, which is a number.", "id"
	case a.ClientID == "":
		problem, field = "Enter the client ID.", "client-id"
	case a.Secrets.ClientSecret == "":
		problem, field = "Enter the client secret. Enter the other secrets again too, because this page never shows them.", "client-secret"
	case !strings.HasPrefix(a.Secrets.PrivateKey, "-----BEGIN "):
		problem, field = "Paste the whole private key, with its first line “-----BEGIN RSA PRIVATE KEY-----”.", "private-key"
	}
	if problem != "" {
		return s.appForm(v, http.StatusBadRequest, body, problem, field)
	}
	if err := s.noApp(v); err != nil {
		return err
	}
	_, err = s.App.Enter(v.R.Context(), v.User.ID, a)
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/admin/github?made")
	case fault.Internal:
		return err
	}
	return s.appForm(v, web.AsPage(err).Status, body, fault.PublicOf(err), "id")
}

// forgetApp handles POST /admin/github/forget.
func (s *pages) forgetApp(v *web.Visit) error {
	if err := s.App.Forget(v.R.Context(), v.User.ID); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/admin/github")
}
