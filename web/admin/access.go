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

// accessPage shows which people may sign in, with which methods and with which clients.
type accessPage struct {
	service.Access
	Entries     []accessEntry
	Others      []accessEntry // ways to sign up other than the list
	Invitations int
	Methods     []accessMethod
	Clients     []clientRow
	More        int // index of the next part of the clients; 0 if there is none
}

// accessEntry is an entry of the allow list, and the number of people whom it admitted.
type accessEntry struct {
	Kind, Value string
	People      int
}

// Joined says how many people the entry admitted.
func (e accessEntry) Joined() string {
	if e.People == 0 {
		return "nobody joined yet"
	}
	return web.Plural(e.People, "1 person joined", "%d people joined")
}

type accessMethod struct {
	Name  string
	On    bool
	About string   // how people use it, or who needs it
	How   string   // how to switch it on; code is between backticks
	URL   string   // the page that switches it on; "" if there is none
	At    web.Link // the page with which About ends, if it has a URL
}

type clientRow struct {
	auth.Client
	Hosts []string // hosts of its redirect addresses
}

// entryKinds returns the entries of the allow list by kind, each with a label.
func entryKinds(a auth.AllowList) []struct {
	kind, label string
	values      []string
} {
	return []struct {
		kind, label string
		values      []string
	}{
		{"email", "Email address", a.Emails}, {"domain", "Everybody with an address of this domain", a.Domains},
		{"github", "User at GitHub", a.GitHubUsers}, {"org", "Members of this organization at GitHub", a.GitHubOrgs},
	}
}

// showAccess handles GET /admin/access.
func (s *pages) showAccess(v *web.Visit) error {
	ctx := v.R.Context()
	access, err := s.Service.GetAccess(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	body := accessPage{Access: access}
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
	body.Methods = s.methods(access.MailFrom)
	all, err := s.Service.ListClients(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b auth.Client) int {
		return usedLast(b).Compare(usedLast(a))
	})
	part, next := web.PartOf(v.R, all)
	for _, c := range part {
		body.Clients = append(body.Clients, clientRow{c, redirectHosts(c)})
	}
	body.More = next
	return s.Page(v, http.StatusOK, "access", web.Page{Title: "Access", Current: "/admin", Styles: []string{"admin.css"}, Body: body, Done: web.DoneIn(v, map[string]string{"saved": "Saved. The change applies now."})})
}

// usedLast returns when a client was last used, or when it was created if that is later.
func usedLast(c auth.Client) time.Time {
	if c.LastUsed.After(c.Created) {
		return c.LastUsed
	}
	return c.Created
}

// otherWays lists the ways of admission other than the allow list. by maps each way to a
// number of people.
func otherWays(by map[string]int) []accessEntry {
	var out []accessEntry
	for way, n := range by {
		e := accessEntry{People: n}
		switch way {
		case "command":
			e.Kind = "Added by the operator, on the command line"
		case "first run":
			e.Kind = "The first person, at the first start"
		case "invitation":
			e.Kind = "With an invite"
		case "":
			e.Kind = "In a way that is not known"
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

// methods returns the ways to sign in, and for each whether it is on. from is the address from
// which the server sends mail. It may be empty.
func (s *pages) methods(from string) []accessMethod {
	names := map[string]string{}
	for _, p := range s.Offered() {
		names[p.Name] = p.Label()
	}
	mail := "With their email address"
	if from != "" {
		mail += ". Mail comes from " + web.Shorten(from, 100)
	}
	return []accessMethod{
		{Name: "Passkeys", On: s.Passkeys != nil, About: "With a fingerprint, a face or a device", How: "Needs an https address. Set `server.public_url` in `satchel.yaml`, and restart the server."},
		{Name: cmp.Or(names["github"], "GitHub"), On: names["github"] != "", About: "With their account at GitHub", How: "Comes with a GitHub App, which you set up in two minutes.", URL: "/admin/github"},
		{Name: cmp.Or(names["oidc"], "Single sign-on"), On: names["oidc"] != "", About: "With the account of your organization", How: "Needs an OpenID provider. Set `auth.oidc` in `satchel.yaml`, and restart the server."},
		{Name: "Email links", On: s.Mail != nil, About: mail, How: "Needs a mail server. Set `auth.mail` in `satchel.yaml`, and restart the server."},
		{Name: "Sign-in links from an admin", On: true, About: "For a person who has no other way. An admin makes such a link under", At: web.Link{Name: "People", URL: "/admin"}},
	}
}

// redirectHosts returns the hosts to which a client redirects. Nothing else about a client
// is certain.
func redirectHosts(c auth.Client) []string {
	var hosts []string
	for _, r := range c.RedirectURIs {
		u, err := url.Parse(r)
		if err != nil {
			continue
		}
		h := u.Host
		if u.Scheme != "https" && u.Scheme != "http" {
			h = u.Scheme + ":" // an application's own scheme
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// setAccess handles POST /admin/access.
func (s *pages) setAccess(v *web.Visit) error {
	in := service.SetAccessInput{MembersInvite: service.Choice(v.R.PostFormValue("members_invite"))}
	if _, err := s.Service.SetAccess(v.R.Context(), v.Actor(), in); err != nil {
		return err
	}
	return s.See(v, "/admin/access?done=saved")
}

// deleteClient handles POST /admin/clients/delete.
func (s *pages) deleteClient(v *web.Visit) error {
	if _, err := s.Service.RemoveClient(v.R.Context(), v.Actor(), service.RemoveClientInput{ID: v.R.PostFormValue("id")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/admin/access#clients")
}
