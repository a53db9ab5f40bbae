package web

import (
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// accountPage is all that belongs to one person.
type accountPage struct {
	User       store.User
	Passkeys   []passkeyRow
	AddPasskey bool
	Identities []store.Identity
	// ByMail: links are mailed to the person; NoAddress: they could be, were the
	// address known.
	ByMail, NoAddress bool
	Links             []inviteWay // providers to link
	Sessions          []store.Session
	Here              string     // the id of this browser's session
	Others            int        // sessions but this one
	MadeLinks         []linkLine // by others, to sign in as the person
	MoreLinks         int
	LinksLeftOut      int64 // of all, past what the page lists
	Clients, Keys     []myClient
	Stdio             bool // of Clients
	Spaces            []store.Membership
	// More are those that the lists leave out.
	MoreClients, MoreKeys, MoreSessions int
	Lifetimes                           []int // days, for a key
	NewName                             string
}

type passkeyRow struct {
	ID            string // in hex
	Name          string
	Created, Used time.Time
}

// keyDays are how long a key may be made for; 0 is for ever.
func keyDays() []int { return []int{30, 90, 365, 0} }

// showAccount is GET /account.
func (s *Server) showAccount(v *visit) error { return s.account(v, http.StatusOK, "", "") }

func (s *Server) account(v *visit, status int, problem, field string) error {
	ctx, a := v.r.Context(), s.o.Accounts
	body := accountPage{User: v.user, AddPasskey: s.o.Passkeys != nil, Here: v.session.ID, Lifetimes: keyDays(), NewName: deviceOf(v.session.Agent)}
	body.ByMail, body.NoAddress = s.o.Mail != nil && v.user.Email != "", s.o.Mail != nil && v.user.Email == ""
	keys, err := a.Passkeys(ctx, v.user.ID)
	if err != nil {
		return err
	}
	for _, k := range keys {
		body.Passkeys = append(body.Passkeys, passkeyRow{ID: hex.EncodeToString(k.ID), Name: k.Name, Created: k.Created, Used: k.Used})
	}
	if body.Identities, err = a.Identities(ctx, v.user.ID); err != nil {
		return err
	}
	for _, p := range s.offered() {
		body.Links = append(body.Links, inviteWay{p.Label(), "/account/link/" + p.name})
	}
	if body.Sessions, err = a.Sessions(ctx, v.user.ID); err != nil {
		return err
	}
	for _, ss := range body.Sessions {
		if ss.ID != body.Here {
			body.Others++
		}
	}
	clients, err := s.clientsOf(v)
	if err != nil {
		return err
	}
	for _, c := range clients {
		if c.Kind == "key" && !c.Stdio {
			body.Keys = append(body.Keys, c)
			continue
		}
		body.Clients = append(body.Clients, c)
		body.Stdio = body.Stdio || c.Stdio
	}
	all := v.r.URL.Query().Has("all")
	links, err := a.LinkNotices(ctx, v.user.ID, maxLinks)
	if err != nil {
		return err
	}
	if len(links) == maxLinks {
		n, err := a.CountLinkNotices(ctx, v.user.ID)
		if err != nil {
			return err
		}
		body.LinksLeftOut = max(0, n-maxLinks)
	}
	body.MadeLinks, body.MoreLinks = firstOf(s.linkLines(links), all)
	body.Clients, body.MoreClients = firstOf(body.Clients, all)
	body.Keys, body.MoreKeys = firstOf(body.Keys, all)
	body.Sessions, body.MoreSessions = firstOf(body.Sessions, all)
	if body.Spaces, err = a.SpacesOf(ctx, v.user.ID); err != nil {
		return err
	}
	return s.page(v, status, "account", page{Title: "Your account", Script: body.AddPasskey, Wide: true, Current: "/account", Body: body, Problem: problem, Field: field, Done: doneIn(v, accountDone())})
}

// maxShown bounds a list on a page that was not asked for all of it.
const maxShown = 30

// firstOf cuts a list to what a page shows, and says how many it leaves out.
func firstOf[T any](list []T, all bool) (shown []T, more int) {
	if all || len(list) <= maxShown {
		return list, 0
	}
	return list[:maxShown], len(list) - maxShown
}

// latest is when a grant was used, or made.
func latest(g store.GrantInfo) time.Time {
	if g.LastUsed.After(g.Created) {
		return g.LastUsed
	}
	return g.Created
}

// inUse reports whether a grant is neither revoked nor over.
func (s *Server) inUse(g store.GrantInfo) bool {
	return g.Revoked.IsZero() && (g.Expires.IsZero() || g.Expires.After(s.now()))
}

// endSession is POST /account/sessions/end.
func (s *Server) endSession(v *visit) error {
	id := v.r.PostFormValue("id")
	if id == v.session.ID {
		if ok, err := s.sureToLeave(v); !ok {
			return err
		}
	}
	if err := s.o.Accounts.EndSession(v.r.Context(), v.by(), v.user.ID, id); err != nil {
		return gone(err)
	}
	s.o.Live.EndSession(v.user.ID, id)
	if id == v.session.ID {
		s.setCookie(v.w, sessionCookie, "", time.Time{})
		return s.see(v, "/signin")
	}
	return s.see(v, "/account?done=ended")
}

// endOtherSessions is POST /account/sessions/end-others.
func (s *Server) endOtherSessions(v *visit) error {
	if _, err := s.o.Accounts.EndOtherSessions(v.r.Context(), v.by(), v.user.ID, v.session.ID); err != nil {
		return err
	}
	s.o.Live.endOtherSessions(v.user.ID, v.session.ID)
	return s.see(v, "/account#sessions")
}

// removePasskey is POST /account/passkeys/remove.
func (s *Server) removePasskey(v *visit) error {
	id, err := hex.DecodeString(v.r.PostFormValue("id"))
	if err != nil {
		return errGone
	}
	if err := s.o.Accounts.RemovePasskey(v.r.Context(), v.by(), v.user.ID, id); err != nil {
		return gone(err)
	}
	return s.see(v, "/account?done=removed")
}

// unlink is POST /account/identities/unlink.
func (s *Server) unlink(v *visit) error {
	err := s.o.Accounts.UnlinkIdentity(v.r.Context(), v.by(), v.user.ID, v.r.PostFormValue("issuer"), v.r.PostFormValue("subject"))
	if err != nil {
		return gone(err)
	}
	return s.see(v, "/account#sign-ins")
}

// revokeGrant is POST /account/grants/revoke, for clients and keys alike.
func (s *Server) revokeGrant(v *visit) error {
	if err := s.o.Accounts.RevokeGrant(v.r.Context(), v.by(), space.GrantID(v.r.PostFormValue("id")), v.user.ID); err != nil {
		return gone(err)
	}
	s.o.Ended(v.r.Context(), v.user.ID)
	switch v.r.PostFormValue("from") {
	case "keys":
		return s.see(v, "/account/keys?done=revoked")
	case "account-keys":
		return s.see(v, "/account?done=revoked")
	}
	return s.see(v, "/account?done=disconnected")
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

// createKey is POST /account/keys.
func (s *Server) createKey(v *visit) error {
	form := v.r.PostForm
	days, err := strconv.Atoi(form.Get("days"))
	if err != nil || !slices.Contains(keyDays(), days) {
		return s.keyProblem(v, "Choose how long the key is good.", "key-days")
	}
	m, err := s.o.Accounts.FindSpace(v.r.Context(), v.user.ID, form.Get("space"))
	if err != nil || string(m.ID) != form.Get("space") {
		return s.keyProblem(v, "Choose one of your spaces.", "key-space")
	}
	name := strings.TrimSpace(form.Get("name"))
	if name == "" {
		return s.keyProblem(v, "Give the key a name, by which you know it later.", "key-name")
	}
	n := store.NewKey{User: v.user.ID, Space: m.ID, Scopes: []space.Scope{space.ScopeRead}, Name: name}
	if form.Get("write") == "1" && m.Role != space.Reader {
		n.Scopes = append(n.Scopes, space.ScopeWrite)
	}
	if days > 0 {
		n.Expires = s.now().Add(time.Duration(days) * 24 * time.Hour)
	}
	g, secret, err := s.o.Accounts.CreateKey(v.r.Context(), v.by(), n)
	switch fault.CodeOf(err) {
	case "":
	case fault.Invalid:
		return s.keyProblem(v, fault.PublicOf(err), "key-name")
	default:
		return err
	}
	return s.showOnce(v, flowNewKey, "/account/keys/made", keyPage{
		Secret: secret.Reveal(), Name: g.Name, Space: m.Name, Scopes: auth.ScopeList(g.Scopes), Expires: g.Expires, MCPURL: s.o.MCPURL, API: s.url("/api"),
	})
}

// showNewKey is GET /account/keys/made, where createKey leads.
func (s *Server) showNewKey(v *visit) error {
	var body keyPage
	if ok, err := s.takeOnce(v, flowNewKey, &body); err != nil {
		return err
	} else if !ok {
		return s.see(v, "/account/keys?done=shown")
	}
	return s.page(v, http.StatusOK, "key", page{Title: "Your new key", Script: true, Current: "/account", Styles: []string{"admin.css"}, Body: body})
}

// gone makes one answer of everything that is not there for this person.
func gone(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Invalid:
		return errGone
	}
	return err
}
