package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/service"
	"satchel/web"
)

// accessPage is who may come in, how, and by which clients.
type accessPage struct {
	web.Access
	Entries     []accessEntry
	Others      []accessEntry // who came in without the list
	Invitations int
	Methods     []accessMethod
	Clients     []clientRow
	More        int // where the next part of the list begins
}

// accessEntry is an entry of the allow list, and how many came in by it.
type accessEntry struct {
	Kind, Value string
	People      int
}

type accessMethod struct {
	Name, Key string // the key of the configuration that it needs
	On        bool
}

type clientRow struct {
	auth.Client
	Hosts []string // of its redirects
}

// entryKinds are the kinds of entries with what they are called here.
func entryKinds(a auth.AllowList) []struct {
	kind, label string
	values      []string
} {
	return []struct {
		kind, label string
		values      []string
	}{
		{"email", "Address", a.Emails}, {"domain", "Every address of", a.Domains},
		{"github", "GitHub user", a.GitHubUsers}, {"org", "Members of the GitHub organisation", a.GitHubOrgs},
	}
}

// showAccess is GET /admin/access.
func (s *pages) showAccess(v *web.Visit) error {
	if s.Health == nil {
		return web.ErrNoPage
	}
	ctx := v.R.Context()
	body := accessPage{Access: s.Health.Access()}
	people, err := s.Service.ListUsers(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	by := map[string]int{}
	for _, u := range people {
		by[strings.ToLower(u.Admitted)]++
	}
	for _, k := range entryKinds(body.Allow) {
		for _, value := range k.values {
			key := strings.ToLower(k.kind + ":" + strings.TrimSpace(value))
			body.Entries = append(body.Entries, accessEntry{k.label, value, by[key]})
			delete(by, key)
		}
	}
	body.Others = otherWays(by)
	open, err := s.Service.ListInvitations(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	body.Invitations = len(open)
	body.Methods = s.methods()
	all, err := s.Service.ListClients(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b auth.Client) int {
		return usedLast(b).Compare(usedLast(a))
	})
	from := min(web.PageFrom(v.R), max(0, len(all)-1))
	for _, c := range all[from:min(from+web.MaxShown, len(all))] {
		body.Clients = append(body.Clients, clientRow{c, redirectHosts(c)})
	}
	if n := from + len(body.Clients); n < len(all) {
		body.More = n
	}
	return s.Page(v, http.StatusOK, "access", web.Page{Title: "Access", Wide: true, Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// usedLast is when a client was used, or made.
func usedLast(c auth.Client) time.Time {
	if c.LastUsed.After(c.Created) {
		return c.LastUsed
	}
	return c.Created
}

// otherWays reports what else let people in: what is left of how many came in by
// what.
func otherWays(by map[string]int) []accessEntry {
	var out []accessEntry
	for way, n := range by {
		e := accessEntry{People: n}
		switch way {
		case "command":
			e.Kind = "Added by who runs the server"
		case "first run":
			e.Kind = "The first run"
		case "invitation":
			e.Kind = "Invitations"
		case "":
			e.Kind = "Not known"
		default:
			e.Kind, e.Value = "No longer on the list", way
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b accessEntry) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Value, b.Value))
	})
	return out
}

// methods are the ways to sign in, and whether they are there.
func (s *pages) methods() []accessMethod {
	names := map[string]string{}
	for _, p := range s.Offered() {
		names[p.Name] = p.Label()
	}
	return []accessMethod{
		{cmp.Or(names["github"], "GitHub"), "auth.github.client_id", names["github"] != ""},
		{cmp.Or(names["oidc"], "Single sign-on"), "auth.oidc.url", names["oidc"] != ""},
		{"Passkeys", "server.public_url", s.Passkeys != nil},
		{"Links by mail", "auth.mail.url", s.Mail != nil},
		{"One-time links, which an admin makes on the page People, and “bin/satchel login-link”", "", true},
	}
}

// redirectHosts is where a client's answers go, which is all that is known of it.
func redirectHosts(c auth.Client) []string {
	var hosts []string
	for _, r := range c.RedirectURIs {
		u, err := url.Parse(r)
		if err != nil {
			continue
		}
		h := u.Host
		if u.Scheme != "https" && u.Scheme != "http" {
			h = u.Scheme + ":" // of an application's own
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// deleteClient is POST /admin/clients/delete.
func (s *pages) deleteClient(v *web.Visit) error {
	if _, err := s.Service.RemoveClient(v.R.Context(), v.Actor(), service.RemoveClientInput{ID: v.R.PostFormValue("id")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/admin/access#clients")
}
