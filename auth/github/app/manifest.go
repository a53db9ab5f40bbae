package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// via is the text in the audit log that says how this package's actions were done.
const via = "web"

// loginForm matches a login at GitHub. The logins of managed users contain an underscore.
var loginForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?$`)
})

// maxAppName is GitHub's limit for the name of an App in characters.
const maxAppName = 34

type hookAttributes struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// manifest is an App's manifest, as described in
// https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest.
type manifest struct {
	Name         string            `json:"name"`
	URL          string            `json:"url"`
	Hook         *hookAttributes   `json:"hook_attributes,omitempty"`
	RedirectURL  string            `json:"redirect_url"`
	CallbackURLs []string          `json:"callback_urls"`
	SetupURL     string            `json:"setup_url"`
	SetupUpdate  bool              `json:"setup_on_update"`
	OAuthInstall bool              `json:"request_oauth_on_install"`
	Public       bool              `json:"public"`
	Events       []string          `json:"default_events,omitempty"`
	Permissions  map[string]string `json:"default_permissions"`
}

// Manifest returns the address to which the browser posts a form, and the content of the
// form's field "manifest". GitHub then redirects the browser to PathCreated with the state
// and a code.
func (c *Client) Manifest(state string, n NewApp) (action string, body []byte, err error) {
	action = c.o.URL + "/settings/apps/new"
	if org := n.Organisation; org != "" {
		if !loginForm().MatchString(org) {
			return "", nil, fault.New(fault.Invalid, "That is not the name of an organization: copy it from the address of its page at GitHub.")
		}
		action = c.o.URL + "/organizations/" + url.PathEscape(org) + "/settings/apps/new"
	}
	m := manifest{
		Name: c.appName(state), URL: c.o.Public, RedirectURL: c.o.Public + PathCreated,
		CallbackURLs: []string{c.o.Public + PathCallback, c.o.Public + pathSignInCallback},
		SetupURL:     c.o.Public + PathSetup, SetupUpdate: true, Public: n.Public,
		Permissions: map[string]string{"contents": "write", "metadata": "read"},
	}
	if n.Creates {
		m.Permissions["administration"] = "write"
	}
	if c.o.Hooks {
		// GitHub sends the events installation, installation_repositories,
		// installation_target and github_app_authorization to every App.
		m.Hook, m.Events = &hookAttributes{URL: c.o.Public + PathWebhook, Active: true}, []string{"push", "repository"}
	}
	if body, err = json.Marshal(m); err != nil {
		return "", nil, fmt.Errorf("github app: %w", err)
	}
	return action + "?state=" + url.QueryEscape(state), body, nil
}

// appName returns a name for the App that is probably free at GitHub. The person can change
// the name at GitHub.
func (c *Client) appName(state string) string {
	host := strings.TrimPrefix(c.o.Public[strings.Index(c.o.Public, "://")+3:], "www.")
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = "Satchel " + name
	if !strings.Contains(host, ".") || net.ParseIP(strings.TrimPrefix(name, "Satchel ")) != nil || len(name) > maxAppName {
		sum := sha256.Sum256([]byte(state))
		suffix := " " + hex.EncodeToString(sum[:3])
		name = strings.TrimRight(name[:min(len(name), maxAppName-len(suffix))], ".- ") + suffix
	}
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '[' || r == ']' {
			return '-'
		}
		return r
	}, name)
}

// made is an App in the form of GitHub's API.
type made struct {
	ID          int64  `json:"id"`
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	ClientID    string `json:"client_id"`
	HTMLURL     string `json:"html_url"`
	Permissions map[string]string
	Owner       struct {
		Login string `json:"login"`
		Slug  string `json:"slug"` // set for an enterprise
	} `json:"owner"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
	PEM           string `json:"pem"`
}

// described checks GitHub's description of an App, and returns the App without its secrets.
func (c *Client) described(m made) (auth.GitHubApp, error) {
	owner := m.Owner.Login
	if owner == "" {
		owner = m.Owner.Slug
	}
	u, err := url.Parse(m.HTMLURL)
	switch {
	case m.ID <= 0 || m.ClientID == "" || len(m.ClientID) > 200 || m.Slug == "" || len(m.Slug) > 200:
		return auth.GitHubApp{}, errors.New("github: the App has no id, client id or slug")
	case err != nil || u.Scheme+"://"+strings.ToLower(u.Host) != c.origin() || u.RawQuery != "" || u.Fragment != "" || u.User != nil || len(m.HTMLURL) > 500:
		// People follow this address.
		return auth.GitHubApp{}, errors.New("github: the App's page is not at the configured GitHub")
	case m.Permissions["contents"] != "write":
		return auth.GitHubApp{}, fault.New(fault.Invalid, "The App lacks the permission to read and write the contents of repositories. Grant it at GitHub, under Permissions & events, and try again.")
	}
	return auth.GitHubApp{
		URL: c.o.URL, ID: m.ID, ClientID: m.ClientID, Slug: m.Slug, Name: m.Name, Owner: owner, HTMLURL: strings.TrimRight(m.HTMLURL, "/"),
		Creates: m.Permissions["administration"] == "write",
	}, nil
}

// origin returns GitHub's origin, in lower case.
func (c *Client) origin() string {
	u, err := url.Parse(c.o.URL)
	if err != nil {
		return "" // impossible, because New has parsed the URL
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// codeForm matches the code of a manifest, which becomes part of a path.
var codeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
})

// Create redeems the code that GitHub sent to PathCreated, and stores the App. The caller
// checks the state. The error is a fault: Conflict if there is already an App, Invalid if
// the code was used, has expired or is malformed.
func (c *Client) Create(ctx context.Context, by space.UserID, code string) (auth.GitHubApp, error) {
	if !codeForm().MatchString(code) {
		return auth.GitHubApp{}, errDeadCode(nil)
	}
	// Check that there is no App before redeeming the code. Otherwise the new App would
	// remain at GitHub, and its key would be lost.
	if err := c.checkNone(ctx); err != nil {
		return auth.GitHubApp{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.VisitTimeout)
	defer cancel()
	var m made
	_, err := c.call(ctx, "", http.MethodPost, "/app-manifests/"+code+"/conversions", nil, &m)
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusGone:
		return auth.GitHubApp{}, errDeadCode(err)
	}
	if err != nil {
		return auth.GitHubApp{}, c.failure("make the App", err)
	}
	a, err := c.described(m)
	if err != nil {
		return auth.GitHubApp{}, c.failure("make the App", err)
	}
	a.Secrets = auth.GitHubSecrets{ClientSecret: m.ClientSecret, PrivateKey: m.PEM, Webhook: m.WebhookSecret}
	return c.keep(ctx, by, a)
}

func errDeadCode(err error) error {
	return fault.Wrap(err, fault.Invalid, "GitHub's answer was already used or is too old: it is valid once, for an hour. Start again; if GitHub created an App meanwhile, you can delete it there.")
}

func (c *Client) checkNone(ctx context.Context) error {
	_, ok, err := c.o.Store.GitHubApp(ctx)
	if err == nil && ok {
		return fault.New(fault.Conflict, "This server already has a GitHub App. Remove it first.")
	}
	return err
}

// keep stores an App if its secrets are usable, and returns the App without them.
func (c *Client) keep(ctx context.Context, by space.UserID, a auth.GitHubApp) (auth.GitHubApp, error) {
	if a.Secrets.ClientSecret == "" || len(a.Secrets.ClientSecret) > 500 || len(a.Secrets.Webhook) > 500 || len(a.Secrets.PrivateKey) > 32<<10 {
		return auth.GitHubApp{}, fault.New(fault.Invalid, "The GitHub App has no client secret, or one of its secrets is too long.")
	}
	if _, err := c.signer(a); err != nil {
		return auth.GitHubApp{}, err
	}
	if !c.o.Hooks {
		a.Secrets.Webhook = "" // no webhook can arrive
	}
	a.Created = c.o.Now()
	if err := c.o.Store.SetGitHubApp(context.WithoutCancel(ctx), by, via, a); err != nil {
		return auth.GitHubApp{}, err
	}
	a.Secrets = auth.GitHubSecrets{}
	return a, nil
}

// Enter stores an App that an admin created at GitHub without the manifest. a holds the
// App's ID and Secrets. Enter first checks the private key and the client secret at GitHub.
// If a has a ClientID, Enter checks the ClientID too. The error is a fault: Conflict if
// there is already an App, Invalid if something does not match.
func (c *Client) Enter(ctx context.Context, by space.UserID, a auth.GitHubApp) (auth.GitHubApp, error) {
	if a.ID <= 0 {
		return auth.GitHubApp{}, fault.New(fault.Invalid, "The App ID must be a number; it is at the top of the App's page at GitHub.")
	}
	a.Secrets.PrivateKey = strings.TrimSpace(strings.ReplaceAll(a.Secrets.PrivateKey, "\r\n", "\n")) + "\n"
	a.Secrets.ClientSecret, a.Secrets.Webhook = strings.TrimSpace(a.Secrets.ClientSecret), strings.TrimSpace(a.Secrets.Webhook)
	if err := c.checkNone(ctx); err != nil {
		return auth.GitHubApp{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.VisitTimeout)
	defer cancel()
	var m made
	err := c.callAsApp(ctx, a, "/app", &m)
	switch statusOf(err) {
	case http.StatusUnauthorized, http.StatusNotFound:
		return auth.GitHubApp{}, fault.Wrap(err, fault.Invalid, "GitHub says that the private key does not belong to the App with this ID. Create a new key on the App's page and paste the whole file.")
	}
	if err != nil {
		return auth.GitHubApp{}, c.failure("look at the App", err)
	}
	got, err := c.described(m)
	switch {
	case err != nil:
		return auth.GitHubApp{}, c.failure("look at the App", err)
	case got.ID != a.ID:
		return auth.GitHubApp{}, fault.New(fault.Invalid, "GitHub says that the private key belongs to another App.")
	case a.ClientID != "" && a.ClientID != got.ClientID:
		return auth.GitHubApp{}, fault.New(fault.Invalid, "The client ID does not belong to this App; its client ID is %s.", got.ClientID)
	}
	got.Secrets = a.Secrets
	if err := c.proveSecret(ctx, got); err != nil {
		return auth.GitHubApp{}, err
	}
	return c.keep(ctx, by, got)
}

// proveSecret checks the client secret. It asks GitHub to revoke a token that does not
// exist. GitHub looks for the token only if the secret is right.
func (c *Client) proveSecret(ctx context.Context, a auth.GitHubApp) error {
	err := c.revoke(ctx, a, "ghu_"+strings.Repeat("0", 36))
	switch {
	case statusOf(err) == http.StatusUnauthorized:
		return fault.Wrap(err, fault.Invalid, "GitHub does not know the client secret. Create a new one on the App's page and paste it.")
	case err == nil || statusOf(err) == http.StatusNotFound || statusOf(err) == http.StatusUnprocessableEntity:
		return nil
	}
	return c.failure("look at the client secret", err)
}

// Forget removes the App from this server. All links become auth.LinkRemoved. The App remains
// at GitHub.
func (c *Client) Forget(ctx context.Context, by space.UserID) error {
	if err := c.o.Store.RemoveGitHubApp(ctx, by, via); err != nil {
		return err
	}
	c.tokens.dropAll()
	links, err := c.o.Store.RepositoryLinks(ctx)
	for _, l := range links {
		c.notify(ctx, l)
	}
	return err
}

// InstallURL returns the address where people install the App. GitHub then redirects them
// to PathSetup with the state.
func (c *Client) InstallURL(ctx context.Context, state string) (string, error) {
	a, err := c.app(ctx)
	if err != nil {
		return "", err
	}
	return a.HTMLURL + "/installations/new?state=" + url.QueryEscape(state), nil
}
