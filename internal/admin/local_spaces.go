package admin

import (
	"context"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func (l *Local) space(ctx context.Context, r SpaceRequest) (store.Membership, error) {
	u, err := l.user(ctx, r.User)
	if err != nil {
		return store.Membership{}, err
	}
	return l.Accounts.FindSpace(ctx, u.ID, r.Name)
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
