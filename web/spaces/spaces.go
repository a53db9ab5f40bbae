// Package spaces serves the pages of spaces: the list, a space with its members, its
// deletion, and its transfer to another owner.
package spaces

import (
	"embed"
	"net/http"
	"slices"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site}
	s.Handle("GET /spaces", web.LimitPage, web.SignedIn, s.listSpaces)
	s.Handle("POST /spaces", web.LimitPage, web.SignedIn, s.createSpace)
	s.HandleSettings(web.SettingsTab{Order: 1, Name: "General"}, s.showSpace)
	s.HandleSettings(web.SettingsTab{Order: 2, Path: "/members", Name: "Members"}, s.showMembers)
	s.HandleSettings(web.SettingsTab{Order: 6, Path: "/export", Name: "Export", Find: "Export and download"}, s.showExport)
	s.HandleSettings(web.SettingsTab{Order: 9, Path: "/danger", Name: "Danger zone"}, s.showDanger)
	s.Handle("POST /spaces/{id}/name", web.LimitPage, web.SignedIn, s.renameSpace)
	s.Handle("POST /spaces/{id}/invite", web.LimitPage, web.SignedIn, s.inviteToSpace)
	s.Handle("POST /spaces/{id}/invitations/revoke", web.LimitPage, web.SignedIn, s.revokeSpaceInvitation)
	s.Handle("POST /spaces/{id}/members/{user}/role", web.LimitPage, web.SignedIn, s.setRole)
	s.Handle("POST /spaces/{id}/members/{user}/remove", web.LimitPage, web.SignedIn, s.removeMember)
	s.Handle("GET /spaces/{id}/end", web.LimitPage, web.SignedIn, s.askDelete)
	s.Handle("POST /spaces/{id}/end", web.LimitPage, web.SignedIn, s.deleteSpace)
	s.Handle("GET /spaces/{id}/give", web.LimitPage, web.SignedIn, s.askGive)
	s.Handle("POST /spaces/{id}/give", web.LimitPage, web.SignedIn, s.giveSpace)
	return s.AddTemplates(templates)
}

// spacePage is the body of the pages of a space's settings, as one of its members sees them.
type spacePage struct {
	Space       service.View
	Owner       bool
	Me          space.UserID
	Members     []store.Member
	Invitations []store.Invitation
	Action      string
	Lifetime    time.Duration
	// MoreMembers and MoreInvitations count the entries that the lists omit.
	MoreMembers, MoreInvitations int
}

// showSpace handles GET /spaces/{id}.
func (s *pages) showSpace(v *web.Visit) error {
	body, err := s.visited(v)
	if err != nil {
		return err
	}
	words := spaceDone()
	if body.Space.Role == space.Editor {
		words = givenDone()
	}
	return s.settings(v, "space", "Settings", body, words)
}

// settings answers with a page of a space's settings.
func (s *pages) settings(v *web.Visit, name, title string, body spacePage, done map[string]string) error {
	m := body.Space
	return s.Page(v, http.StatusOK, name, web.Page{Title: title, Label: m.Name, Current: "space", Space: &m, Styles: []string{"activity.css"}, Body: body, Done: web.DoneIn(v, done)})
}

// visited returns the body of a page of the settings of the space in the path.
func (s *pages) visited(v *web.Visit) (spacePage, error) {
	m, err := s.Space(v)
	return spacePage{Space: m, Owner: m.Role == space.Owner, Me: v.User.ID, Action: "/spaces/" + string(m.ID), Lifetime: s.InviteLifetime}, err
}

// showExport handles GET /spaces/{id}/export.
func (s *pages) showExport(v *web.Visit) error {
	body, err := s.visited(v)
	if err != nil {
		return err
	}
	return s.settings(v, "spaceexport", "Export", body, nil)
}

// showDanger handles GET /spaces/{id}/danger.
func (s *pages) showDanger(v *web.Visit) error {
	body, err := s.visited(v)
	if err != nil {
		return err
	}
	return s.settings(v, "spacedanger", "Danger zone", body, nil)
}

// showMembers handles GET /spaces/{id}/members.
func (s *pages) showMembers(v *web.Visit) error {
	body, err := s.visited(v)
	if err != nil {
		return err
	}
	ref := service.SpaceRef{ID: body.Space.ID}
	if body.Members, err = s.Service.ListMembers(v.R.Context(), v.Actor(), service.ListMembersInput{Space: ref}); err != nil {
		return err
	}
	if body.Owner {
		body.Invitations, err = s.Service.ListSpaceInvitations(v.R.Context(), v.Actor(), service.ListSpaceInvitationsInput{Space: ref})
		if err != nil {
			return err
		}
	}
	all := v.R.URL.Query().Has("all")
	body.Members, body.MoreMembers = web.FirstOf(body.Members, all)
	body.Invitations, body.MoreInvitations = web.FirstOf(body.Invitations, all)
	return s.settings(v, "members", "Members", body, spaceDone())
}

// inviteToSpace handles POST /spaces/{id}/invite.
func (s *pages) inviteToSpace(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	role := space.Role(v.R.PostFormValue("role"))
	if role != space.Editor && role != space.Reader {
		return fault.New(fault.Invalid, "Choose whether the person may change the space or only read it.")
	}
	what := "to read the space " + m.Name
	if role == space.Editor {
		what = "to read and change the space " + m.Name
	}
	in := service.InviteToSpaceInput{Space: service.SpaceRef{ID: m.ID}, Role: role, Note: web.InvitationNote(v)}
	link, err := s.Service.InviteToSpace(v.R.Context(), v.Actor(), in)
	if err != nil {
		return err
	}
	return s.ShowInvitation(v, link, what, "/spaces/"+string(m.ID)+"/members")
}

// revokeSpaceInvitation handles POST /spaces/{id}/invitations/revoke.
func (s *pages) revokeSpaceInvitation(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if _, err := s.Service.RevokeInvitation(v.R.Context(), v.Actor(), service.RevokeInvitationInput{ID: v.R.PostFormValue("id")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/spaces/"+string(m.ID)+"/members?done=revoked")
}

// member returns the member in the path. For the owner it returns an error, because nobody
// can change their role or remove them.
func (s *pages) member(v *web.Visit, m service.View) (store.Member, error) {
	all, err := s.Service.ListMembers(v.R.Context(), v.Actor(), service.ListMembersInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return store.Member{}, err
	}
	i := slices.IndexFunc(all, func(o store.Member) bool { return string(o.User) == v.R.PathValue("user") })
	if i < 0 {
		return store.Member{}, web.ErrGone
	}
	if all[i].Role == space.Owner {
		return store.Member{}, fault.New(fault.Invalid, "%s owns the space. The owner's role cannot be changed, and the owner cannot be removed.", all[i].Name)
	}
	return all[i], nil
}

// setRole handles POST /spaces/{id}/members/{user}/role.
func (s *pages) setRole(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	who, err := s.member(v, m)
	if err != nil {
		return err
	}
	role := space.Role(v.R.PostFormValue("role"))
	if role == who.Role {
		return s.See(v, "/spaces/"+string(m.ID)+"/members?done=same")
	}
	in := service.SetMemberInput{Space: service.SpaceRef{ID: m.ID}, Member: service.UserRef{ID: who.User}, Role: role}
	if _, err := s.Service.SetMember(v.R.Context(), v.Actor(), in); err != nil {
		return err
	}
	return s.See(v, "/spaces/"+string(m.ID)+"/members?done=role")
}

// removeMember handles POST /spaces/{id}/members/{user}/remove. The owner removes a member,
// or a member leaves.
func (s *pages) removeMember(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	leaves := v.R.PathValue("user") == string(v.User.ID)
	if !leaves {
		if m, err = s.OwnedSpace(v); err != nil {
			return err
		}
	}
	who, err := s.member(v, m)
	if err != nil {
		return err
	}
	ref := service.SpaceRef{ID: m.ID}
	if leaves {
		if _, err := s.Service.LeaveSpace(v.R.Context(), v.Actor(), service.LeaveSpaceInput{Space: ref}); err != nil {
			return err
		}
		return s.See(v, "/account#spaces")
	}
	if _, err := s.Service.RemoveMember(v.R.Context(), v.Actor(), service.RemoveMemberInput{Space: ref, Member: service.UserRef{ID: who.User}}); err != nil {
		return err
	}
	return s.See(v, "/spaces/"+string(m.ID)+"/members?done=removed")
}

// spaceDone returns the confirmations on a space's page.
func spaceDone() map[string]string {
	return map[string]string{
		"role":    "The role was changed.",
		"same":    "No change was needed: the member already has this role.",
		"removed": "The member was removed.",
		"revoked": "The invite was revoked.",
	}
}

// givenDone returns the confirmations on the page of a space that the visitor does not own.
func givenDone() map[string]string {
	return map[string]string{"given": "The space was transferred. You are now an " + string(space.Editor) + "."}
}

// spacesDone returns the confirmations on the list of spaces.
func spacesDone() map[string]string {
	return map[string]string{"deleted": "The space was deleted. Nobody can reach it, and the server is removing its files."}
}
