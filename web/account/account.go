// Package account serves the pages about a person: the first page, the account, keys,
// and signing out. Register adds them to a site.
package account

import (
	"embed"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	known *lru.Cache[knownKey, known]
	weeks *lru.Cache[knownKey, week]
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	cache, err := lru.New[knownKey, known](cachedKnown)
	if err != nil {
		return err
	}
	weeks, err := lru.New[knownKey, week](cachedKnown)
	if err != nil {
		return err
	}
	s := &pages{site, cache, weeks}
	s.Handle("GET /{$}", web.LimitPage, web.Anyone, s.home)
	s.Handle("POST /start/local", web.LimitPage, web.SignedIn, s.stayLocal)
	s.Handle("POST /start/skip", web.LimitPage, web.SignedIn, s.skipBringing)
	s.Handle("POST /start/dismiss", web.LimitPage, web.SignedIn, s.dismissSteps)
	s.Handle("GET /account/keys", web.LimitPage, web.SignedIn, s.showKeys)
	s.Handle("POST /signout", web.LimitPage, web.Anyone, s.signOut)
	s.Handle("GET /account", web.LimitPage, web.SignedIn, s.showAccount)
	s.Handle("POST /account/sessions/end", web.LimitPage, web.SignedIn, s.endSession)
	s.Handle("POST /account/sessions/end-others", web.LimitPage, web.SignedIn, s.endOtherSessions)
	s.Handle("POST /account/passkeys/remove", web.LimitPage, web.SignedIn, s.removePasskey)
	s.Handle("POST /account/identities/unlink", web.LimitPage, web.SignedIn, s.unlink)
	s.Handle("POST /account/grants/revoke", web.LimitPage, web.SignedIn, s.revokeGrant)
	s.Handle("POST /account/keys", web.LimitPage, web.SignedIn, s.createKey)
	s.Handle("GET /account/keys/made", web.LimitPage, web.SignedIn, s.showNewKey)
	return s.AddTemplates(templates)
}

// accountPage shows everything that belongs to a person.
type accountPage struct {
	User       store.User
	Passkeys   []passkeyRow
	AddPasskey bool
	Identities []store.Identity
	// ByMail reports whether the person can get sign-in links by mail. NoAddress reports
	// whether they cannot because the server does not know their address.
	ByMail, NoAddress bool
	Links             []web.ProviderButton // providers to link
	Sessions          []store.Session
	Here              string     // the id of this browser's session
	Others            int        // number of the other sessions
	MadeLinks         []madeLink // sign-in links for the person that others made
	MoreLinks         int
	LinksLeftOut      int64 // number of links beyond maxLinks
	Clients           []client
	Stdio             bool // one of Clients is a program with a key for each run
	Spaces            []service.View
	// MoreClients and MoreSessions count the entries that the lists omit.
	MoreClients, MoreSessions int
	NewName                   string
}

type passkeyRow struct {
	ID            string // in hex
	Name          string
	Created, Used time.Time
}

// keyDays returns the lifetimes of keys that a person can choose, in days. 0 means forever.
func keyDays() []int { return []int{30, 90, 365, 0} }

// showAccount handles GET /account.
func (s *pages) showAccount(v *web.Visit) error {
	ctx, a := v.R.Context(), s.Accounts
	body := accountPage{User: v.User, AddPasskey: s.Passkeys != nil, Here: v.Session.ID, NewName: web.DeviceOf(v.Session.Agent)}
	body.ByMail, body.NoAddress = s.Mail != nil && v.User.Email != "", s.Mail != nil && v.User.Email == ""
	keys, err := a.Passkeys(ctx, v.User.ID)
	if err != nil {
		return err
	}
	for _, k := range keys {
		body.Passkeys = append(body.Passkeys, passkeyRow{ID: hex.EncodeToString(k.ID), Name: k.Name, Created: k.Created, Used: k.Used})
	}
	if body.Identities, err = a.Identities(ctx, v.User.ID); err != nil {
		return err
	}
	for _, p := range s.Offered() {
		body.Links = append(body.Links, web.ProviderButton{Label: p.Label(), Action: "/account/link/" + p.Name})
	}
	if body.Sessions, err = a.Sessions(ctx, v.User.ID); err != nil {
		return err
	}
	for _, ss := range body.Sessions {
		if ss.ID != body.Here {
			body.Others++
		}
	}
	slices.SortStableFunc(body.Sessions, func(a, b store.Session) int { // this browser comes first
		switch body.Here {
		case a.ID:
			return -1
		case b.ID:
			return 1
		}
		return 0
	})
	clients, err := s.clientsOf(v)
	if err != nil {
		return err
	}
	for _, c := range clients {
		if c.isKey() {
			continue // keys have their own page
		}
		body.Clients = append(body.Clients, c)
		body.Stdio = body.Stdio || c.Stdio
	}
	all := v.R.URL.Query().Has("all")
	links, err := a.LinkNotices(ctx, v.User.ID, maxLinks)
	if err != nil {
		return err
	}
	if len(links) == maxLinks {
		n, err := a.CountLinkNotices(ctx, v.User.ID)
		if err != nil {
			return err
		}
		body.LinksLeftOut = max(0, n-maxLinks)
	}
	body.MadeLinks, body.MoreLinks = web.FirstOf(s.madeLinks(links), all)
	body.Clients, body.MoreClients = web.FirstOf(body.Clients, all)
	body.Sessions, body.MoreSessions = web.FirstOf(body.Sessions, all)
	if body.Spaces, err = s.Spaces(v); err != nil {
		return err
	}
	return s.Page(v, http.StatusOK, "account", web.Page{Title: "Your account", Script: body.AddPasskey, Current: "/account", Styles: []string{"admin.css"}, Body: body, Done: web.DoneIn(v, accountDone())})
}

// latest returns the time of a grant's last use, or of its creation if it was never used.
func latest(g service.Grant) time.Time {
	if g.LastUsed.After(g.Created) {
		return g.LastUsed
	}
	return g.Created
}

// endSession handles POST /account/sessions/end.
func (s *pages) endSession(v *web.Visit) error {
	id := v.R.PostFormValue("id")
	if id == v.Session.ID {
		if ok, err := s.sureToSignOut(v); !ok {
			return err
		}
	}
	if _, err := s.Service.EndSession(v.R.Context(), v.Actor(), service.EndSessionInput{ID: id}); err != nil {
		return web.Gone(err)
	}
	s.Live.EndSession(v.User.ID, id)
	if id == v.Session.ID {
		s.ForgetSession(v)
		return s.See(v, "/signin")
	}
	return s.See(v, "/account?done=ended")
}

// endOtherSessions handles POST /account/sessions/end-others.
func (s *pages) endOtherSessions(v *web.Visit) error {
	if _, err := s.Service.EndSessions(v.R.Context(), v.Actor(), service.EndSessionsInput{Keep: v.Session.ID}); err != nil {
		return err
	}
	s.Live.EndOtherSessions(v.User.ID, v.Session.ID)
	return s.See(v, "/account#sessions")
}

// removePasskey handles POST /account/passkeys/remove.
func (s *pages) removePasskey(v *web.Visit) error {
	id, err := hex.DecodeString(v.R.PostFormValue("id"))
	if err != nil {
		return web.ErrGone
	}
	if err := s.Accounts.RemovePasskey(v.R.Context(), v.By(), v.User.ID, id); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/account?done=removed")
}

// unlink handles POST /account/identities/unlink.
func (s *pages) unlink(v *web.Visit) error {
	err := s.Accounts.UnlinkIdentity(v.R.Context(), v.By(), v.User.ID, v.R.PostFormValue("issuer"), v.R.PostFormValue("subject"))
	if err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/account#sign-ins")
}

// revokeGrant handles POST /account/grants/revoke, for both clients and keys.
func (s *pages) revokeGrant(v *web.Visit) error {
	if _, err := s.Service.RevokeGrant(v.R.Context(), v.Actor(), service.RevokeGrantInput{ID: space.GrantID(v.R.PostFormValue("id"))}); err != nil {
		return web.Gone(err)
	}
	if v.R.URL.Query().Get("from") == "keys" {
		return s.See(v, "/account/keys?done=revoked")
	}
	return s.See(v, "/account?done=disconnected")
}

// keyPage shows the secret of a new key, once.
type keyPage struct {
	Secret  string
	Name    string
	Space   string
	Scopes  string
	Expires time.Time
	MCPURL  string
	API     string
}

// createKey handles POST /account/keys.
func (s *pages) createKey(v *web.Visit) error {
	form := v.R.PostForm
	days, err := strconv.Atoi(form.Get("days"))
	if err != nil || !slices.Contains(keyDays(), days) {
		return s.keys(v, http.StatusBadRequest, "Choose how long the key is valid.", "key-days")
	}
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m service.View) bool { return string(m.ID) == form.Get("space") })
	if i < 0 {
		return s.keys(v, http.StatusBadRequest, "Choose one of your spaces.", "key-space")
	}
	m := all[i]
	name := strings.TrimSpace(form.Get("name"))
	if name == "" {
		return s.keys(v, http.StatusBadRequest, "Give the key a name so that you recognise it later.", "key-name")
	}
	in := service.CreateKeyInput{
		Space: service.SpaceRef{ID: m.ID}, Scopes: []space.Scope{space.ScopeRead}, Name: name, Lifetime: time.Duration(days) * 24 * time.Hour,
	}
	if form.Get("write") == "1" && m.Role != space.Reader {
		in.Scopes = append(in.Scopes, space.ScopeWrite)
	}
	key, err := s.Service.CreateKey(v.R.Context(), v.Actor(), in)
	switch fault.CodeOf(err) {
	case "":
	case fault.Invalid:
		return s.keys(v, http.StatusBadRequest, fault.PublicOf(err), "key-name")
	default:
		return err
	}
	return s.ShowOnce(v, web.FlowNewKey, "/account/keys/made", keyPage{
		Secret: key.Secret, Name: name, Space: m.Name, Scopes: auth.ScopeList(in.Scopes), Expires: key.Expires, MCPURL: s.MCPURL, API: s.URL("/api"),
	})
}

// showNewKey handles GET /account/keys/made, the target of createKey's redirect.
func (s *pages) showNewKey(v *web.Visit) error {
	var body keyPage
	if ok, err := s.TakeOnce(v, web.FlowNewKey, &body); err != nil {
		return err
	} else if !ok {
		return s.See(v, "/account/keys?done=shown")
	}
	return s.Page(v, http.StatusOK, "key", web.Page{Title: "Your new key", Script: true, Current: "/account", Styles: []string{"admin.css"}, Body: body})
}

// accountDone returns the messages that confirm actions on the account's pages.
func accountDone() map[string]string {
	return map[string]string{
		"disconnected": "The client was disconnected. Its changes stay.",
		"revoked":      "The key was revoked.",
		"passkey":      "The passkey was added. You can sign in with it next time.",
		"removed":      "The passkey was removed.",
		"shown":        "A new key is shown only once. If you did not copy it, revoke it and create another.",
		"ended":        "The session was ended.",
	}
}
