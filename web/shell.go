package web

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// shell is the frame around the pages of a signed-in person.
type shell struct {
	Label  string // the name of the person
	Spaces []spaceLink
	More   int // number of spaces that Spaces leaves out
	// First are the places that a phone shows in its bar. Rest and Below are two further
	// groups, which a phone shows in a menu.
	First, Rest, Below []Link
	Search, Jump       string // addresses of the search page and of the names of files for the palette; "" without a space
	Account            bool   // the page is about the account
	Settings           []Link // the tabs of a space's settings, or of the account; nil on other pages
	Jumps              []Link // more places of the palette
}

type spaceLink struct {
	service.View
	URL  string
	Here bool
}

// shellScript runs on every page with the frame. It closes menus and opens the palette: a dialog
// that goes to a page or a file, or searches.
const shellScript = "shell.js"

// switcherSpaces limits the spaces in the space switcher.
const switcherSpaces = 8

// shellOf returns the frame of a page. The person may have no space. failing counts the person's
// sources that need attention.
func (s *Site) shellOf(v *Visit, p *Page, all []service.View, failing int) *shell {
	sh := &shell{Label: v.User.Display, Account: p.Current == "/account"}
	if sh.Label == "" {
		sh.Label = v.User.Name
	}
	link := func(name, to, icon string, current ...string) Link {
		return Link{Name: name, URL: to, Icon: icon, Here: slices.Contains(current, p.Current)}
	}
	sh.First = []Link{link("Home", "/", "house", "home")}
	if p.Nav != nil {
		base := "/spaces/" + string(p.Nav.ID)
		sh.Search, sh.Jump = base+"/search", base+"/jump"
		sh.First = append(sh.First, link("Files", base+"/files/", "folder", "files"), link("Search", base+"/search", "search", "search"), link("Memory", base+"/memory", "bookmark", "memory"))
		sh.Rest = append(sh.Rest, link("Activity", base+"/activity", "activity", "activity"))
		sh.Below = append(sh.Below, link("Settings", base, "settings", "space", "remote", "github", "bring"))
		sh.Settings = s.settingsOf(p)
	}
	sources := link("Sources", "/library", "library", "library")
	sources.Trouble = failing
	sh.Rest = append(sh.Rest, sources)
	sh.Below = append([]Link{link("Connect", "/connect", "plug", "connect")}, sh.Below...)
	if p.Admin {
		sh.Below = append(sh.Below, link("Admin", "/admin", "shield", "/admin"))
	}
	// From search, activity, memory and settings, the switcher leads to the same page of the other
	// space. From other pages, it leads to the files.
	page := "/files/"
	switch p.Current {
	case "search", "activity", "memory", "reviews":
		page = "/" + p.Current
	case "space":
		page = ""
	}
	for i := range all[:min(len(all), switcherSpaces)] {
		sh.Spaces = append(sh.Spaces, spaceLink{all[i], "/spaces/" + string(all[i].ID) + page, p.Nav != nil && all[i].ID == p.Nav.ID})
	}
	sh.More = len(all) - len(sh.Spaces)
	if sh.Account {
		sh.Settings = []Link{{Name: "Account", URL: "/account"}, {Name: "Keys", URL: "/account/keys"}}
	}
	markTab(sh.Settings, v.R.URL.Path)
	sh.Jumps = s.jumpsOf(p)
	return sh
}

// jumpsOf returns the places that the palette has in addition to those of the navigation.
func (s *Site) jumpsOf(p *Page) (jumps []Link) {
	add := func(name, url string) { jumps = append(jumps, Link{Name: name, URL: url}) }
	if p.Nav != nil {
		base := "/spaces/" + string(p.Nav.ID)
		add("History", base+"/history/")
		if p.Nav.Role != space.Reader {
			add("Import", base+"/bring")
		}
		if p.Nav.Role == space.Owner {
			add("Invite a person", base+"/members#invitations")
		}
		for _, t := range s.settingsTabs {
			if t.Path != "" && t.open(p.Nav.Role) { // the tab whose Path is empty is in the sidebar, as Settings
				add(cmp.Or(t.Find, t.Name), base+t.Path)
			}
		}
	}
	add("Add a source", "/library/add")
	add("Keys", "/account/keys")
	if p.Admin {
		for _, a := range s.adminPages {
			add("Admin: "+a.Name, a.Path)
		}
	}
	return jumps
}

// settingsOf returns the tabs of a space's settings for a page in these settings. It returns nil
// for other pages.
func (s *Site) settingsOf(p *Page) []Link {
	if p.Space == nil || !slices.Contains([]string{"space", "remote", "github"}, p.Current) {
		return nil
	}
	return s.tabsOf(p.Space.ID, p.Space.Role)
}

// markTab marks the tab of the page at a path. A page below the page of a tab also belongs
// to that tab, except for the first tab.
func markTab(tabs []Link, at string) {
	if dir, page := path.Split(at); page == "give" || page == "end" { // the danger zone links to these pages
		at = dir + "danger"
	}
	for i := range tabs {
		tabs[i].Here = at == tabs[i].URL || i > 0 && strings.HasPrefix(at, tabs[i].URL+"/")
	}
}

const (
	themeCookie   = "satchel-theme"
	themeLifetime = 400 * 24 * time.Hour // browsers keep no cookie for longer
)

// themeOf returns "light" or "dark" if the person chose one, or "" for the system's theme.
func (s *Site) themeOf(r *http.Request) string {
	all := r.CookiesNamed(s.CookieName(themeCookie))
	if len(all) != 1 || all[0].Value != "light" && all[0].Value != "dark" {
		return ""
	}
	return all[0].Value
}

// chooseTheme handles POST /theme.
func (s *Site) chooseTheme(v *Visit) error {
	theme := v.R.PostFormValue("theme")
	switch theme {
	case "light", "dark":
	case "system":
		theme = "" // no cookie
	default:
		return fault.New(fault.Invalid, "The theme must be light, dark or system.")
	}
	s.SetCookie(v.W, themeCookie, theme, s.Now().Add(themeLifetime))
	return s.See(v, s.cameFrom(v.R))
}

// cameFrom returns the address of the page that sent a form. It returns "/" if a GET of that
// address finds no page, for example because the page was the answer to a form.
func (s *Site) cameFrom(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != s.Origin.Host {
		return "/"
	}
	path := LocalPath(from.RequestURI())
	to, err := url.Parse(path)
	if err != nil {
		return "/"
	}
	if _, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, Host: s.Origin.Host, URL: to}); pattern == "" || pattern == "/" {
		return "/"
	}
	return path
}
