package admin

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Spaces lists spaces with their repositories.
func (l *Local) Spaces(ctx context.Context, user string) ([]SpaceInfo, error) {
	names, err := l.Accounts.UserNames(ctx)
	if err != nil {
		return nil, err
	}
	var rows []store.Space
	if user == "" {
		rows, err = l.Accounts.Spaces(ctx)
	} else {
		var u store.User
		if u, err = l.Accounts.FindUser(ctx, user); err == nil {
			var ms []store.Membership
			ms, err = l.Accounts.SpacesOf(ctx, u.ID)
			for _, m := range ms {
				rows = append(rows, m.Space)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	out := []SpaceInfo{}
	for _, s := range rows {
		info, err := l.spaceInfo(ctx, s, names)
		if err != nil && fault.CodeOf(err) != fault.Damaged { // it is listed without its head
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func (l *Local) spaceInfo(ctx context.Context, s store.Space, names map[space.UserID]store.UserName) (SpaceInfo, error) {
	head, err := l.Git.Head(ctx, s.ID)
	out := SpaceInfo{ID: s.ID, Name: s.Name, Owner: names[s.Owner].Name, Head: head, Repository: filepath.Join(l.SpacesDir, string(s.ID)+".git")}
	if names[s.Owner].Removed {
		out.Owner, out.OwnerWas = "", out.Owner
	}
	return out, err
}

// CreateSpace makes the repository first, as for a new person.
func (l *Local) CreateSpace(ctx context.Context, r SpaceRequest) (SpaceInfo, error) {
	u, err := l.user(ctx, r.User)
	if err != nil {
		return SpaceInfo{}, err
	}
	if err := store.CheckName(r.Name); err != nil {
		return SpaceInfo{}, err
	}
	id := space.NewSpaceID()
	meta := space.Meta{Author: author(u), Message: "Start the space", Tool: "satchel"}
	c, err := l.Git.Create(ctx, id, gitstore.StartingTree(), meta)
	if err != nil {
		return SpaceInfo{}, err
	}
	sp, err := l.Accounts.CreateSpace(ctx, operator, u.ID, id, r.Name)
	if err != nil {
		return SpaceInfo{}, errors.Join(err, l.Git.Remove(context.WithoutCancel(ctx), id))
	}
	return SpaceInfo{ID: sp.ID, Name: sp.Name, Owner: u.Name, Repository: filepath.Join(l.SpacesDir, string(sp.ID)+".git"), Head: c.ID}, nil
}

func (l *Local) space(ctx context.Context, r SpaceRequest) (store.Membership, error) {
	u, err := l.user(ctx, r.User)
	if err != nil {
		return store.Membership{}, err
	}
	return l.Accounts.FindSpace(ctx, u.ID, r.Name)
}

// Members lists the members of a space.
func (l *Local) Members(ctx context.Context, r SpaceRequest) ([]Member, error) {
	m, err := l.space(ctx, r)
	if err != nil {
		return nil, err
	}
	rows, err := l.Accounts.Members(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	out := []Member{}
	for _, row := range rows {
		out = append(out, Member{Name: row.Name, Role: row.Role, Added: row.Added})
	}
	return out, nil
}

// SetMember adds a member or changes a role.
func (l *Local) SetMember(ctx context.Context, r MemberRequest) error {
	m, err := l.space(ctx, r.SpaceRequest)
	if err != nil {
		return err
	}
	u, err := l.Accounts.FindUser(ctx, r.Member)
	if err != nil {
		return err
	}
	return l.Accounts.AddMember(ctx, operator, m.ID, u.ID, r.Role)
}

// RemoveMember ends a membership, and what runs for it.
func (l *Local) RemoveMember(ctx context.Context, r MemberRequest) error {
	m, err := l.space(ctx, r.SpaceRequest)
	if err != nil {
		return err
	}
	u, err := l.Accounts.FindUser(ctx, r.Member)
	if err != nil {
		return err
	}
	if err := l.Accounts.RemoveMember(ctx, operator, m.ID, u.ID); err != nil {
		return err
	}
	if l.MemberEnded != nil {
		l.MemberEnded(ctx, u.ID, m.ID)
	}
	return nil
}

// GiveSpace makes another person the owner.
func (l *Local) GiveSpace(ctx context.Context, r GiveRequest) (SpaceInfo, error) {
	to, err := l.Accounts.FindUser(ctx, r.To)
	if err != nil {
		return SpaceInfo{}, err
	}
	id, err := l.givenSpace(ctx, r.SpaceRequest)
	if err != nil {
		return SpaceInfo{}, err
	}
	if err := l.Accounts.GiveSpace(ctx, operator, id, to.ID); err != nil {
		return SpaceInfo{}, err
	}
	// The token and the repository are the former owner's.
	if err := l.EndRemote(ctx, operator, id); err != nil {
		return SpaceInfo{}, fault.Wrap(err, fault.Unavailable, "The space is given away, but its remote, which has the former owner's token, could not be removed. A server that runs tries that once more, and each start does; the log says when it fails.")
	}
	sp, err := l.Accounts.Space(ctx, id)
	if err != nil {
		return SpaceInfo{}, err
	}
	names, err := l.Accounts.UserNames(ctx)
	if err != nil {
		return SpaceInfo{}, err
	}
	return l.spaceInfo(ctx, sp, names)
}

// DeleteSpace deletes a space for good, or tells what goes with it.
func (l *Local) DeleteSpace(ctx context.Context, r DeleteRequest) (DeletedSpace, error) {
	id, err := l.givenSpace(ctx, r.SpaceRequest)
	if err != nil {
		return DeletedSpace{}, err
	}
	sp, err := l.Accounts.Space(ctx, id)
	if err != nil {
		return DeletedSpace{}, err
	}
	names, err := l.Accounts.UserNames(ctx)
	if err != nil {
		return DeletedSpace{}, err
	}
	out := DeletedSpace{ID: sp.ID, Name: sp.Name, Owner: names[sp.Owner].Name}
	if names[sp.Owner].Removed {
		out.Owner, out.OwnerWas = "", out.Owner
	}
	members, err := l.Accounts.Members(ctx, id)
	if err != nil {
		return DeletedSpace{}, err
	}
	for _, m := range members {
		if m.Role != space.Owner {
			out.Members++
		}
	}
	// Of a space that cannot be read nobody can say it, and it is deleted all the same.
	if st, err := l.Remotes.Status(ctx, id); err == nil {
		if st.Remote != nil {
			out.Remote = PlaceOf(st.Remote.URL)
		}
		out.Unpushed = st.Unpushed
	}
	out.Sources = len(l.Published.Of(id))
	if r.Look {
		return out, nil
	}
	out.Deleted = true
	return out, l.Delete(ctx, operator, id, "")
}

// givenSpace finds any space by its id, so that one is found that nobody owns, and
// by NAME only what the person owns: nobody means to give away what they are a
// reader of.
func (l *Local) givenSpace(ctx context.Context, r SpaceRequest) (space.SpaceID, error) {
	if id, err := space.ParseSpaceID(r.Name); err == nil {
		if sp, err := l.Accounts.Space(ctx, id); err == nil {
			return sp.ID, nil
		}
	}
	m, err := l.space(ctx, r)
	if err != nil {
		return "", err
	}
	if m.Role != space.Owner && !strings.Contains(r.Name, "/") {
		return "", fault.New(fault.Invalid, "The space %s is not theirs but of %s; give its ID: %s.", m.Name, m.OwnerLabel(), m.ID)
	}
	return m.ID, nil
}

// spaceOf finds a person and a space of theirs: NAME is their first, NAME/SPACE
// another one.
func (l *Local) spaceOf(ctx context.Context, ref string) (store.User, space.SpaceID, error) {
	name, which, _ := strings.Cut(ref, "/")
	u, err := l.user(ctx, name)
	if err != nil {
		return store.User{}, "", err
	}
	m, err := l.Accounts.FindSpace(ctx, u.ID, which)
	if err != nil {
		return store.User{}, "", err
	}
	return u, m.ID, nil
}

// pathOf reads a path that may be empty, and a directory's with the slash that
// shells complete it with.
func pathOf(s string) (space.Path, error) {
	if s = strings.TrimSuffix(s, "/"); s == "" {
		return "", nil
	}
	return space.ParsePath(s)
}

// resolve finds the commit that a person names, in letters of any case.
func (l *Local) resolve(ctx context.Context, id space.SpaceID, at string) (space.CommitID, error) {
	if at != "HEAD" {
		at = strings.ToLower(strings.TrimSpace(at))
	}
	return l.Git.Resolve(ctx, id, at)
}
