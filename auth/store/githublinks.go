package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

type githubLinkRow struct {
	SpaceID      string `gorm:"primaryKey"`
	UserID       string
	GithubUser   int64
	GithubLogin  string
	Installation int64
	Account      string
	Repository   int64
	FullName     string
	State        string
	Since        int64
	Checked      int64
	Created      int64
}

func (githubLinkRow) TableName() string { return "auth_github_links" }

func (r githubLinkRow) link() auth.RepositoryLink {
	return auth.RepositoryLink{
		Space: space.SpaceID(r.SpaceID), User: space.UserID(r.UserID), GitHubUser: r.GithubUser, GitHubLogin: r.GithubLogin,
		Installation: r.Installation, Account: r.Account, Repository: r.Repository, FullName: r.FullName,
		State: auth.LinkState(r.State), Since: database.Time(r.Since), Checked: database.Time(r.Checked), Created: database.Time(r.Created),
	}
}

// LinkRepository connects a repository to a space, and sets the times of creation and state. It
// replaces the space's former repository. The error is a fault.NotFound if there is no such
// space or user. It is a fault.Forbidden if the user does not own the space: otherwise the space
// could be pushed to a repository that its owner cannot read. It is a fault.Conflict if another
// space has the repository; only the owner of that space sees its name. If the other space's
// connection no longer works, LinkRepository ends it instead.
func (s *Store) LinkRepository(ctx context.Context, by space.UserID, via string, l auth.RepositoryLink) error {
	now := database.Millis(s.now())
	row := githubLinkRow{
		SpaceID: string(l.Space), UserID: string(l.User), GithubUser: l.GitHubUser, GithubLogin: clean(l.GitHubLogin, 200),
		Installation: l.Installation, Account: clean(l.Account, 200), Repository: l.Repository, FullName: clean(l.FullName, 300),
		State: string(l.State), Since: now, Checked: database.Millis(l.Checked), Created: now,
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		// Lock the user's row first, as GiveSpace does.
		if _, err := s.lockActive(tx, l.User); err != nil {
			return err
		}
		sp, err := takeSpace(tx, l.Space)
		if err != nil {
			return err
		}
		if sp.OwnerID != row.UserID {
			return fault.New(fault.Forbidden, "Only the owner of the space %s can connect a repository to it.", sp.Name)
		}
		if err := s.freeRepository(tx, Actor{by, via}, row); err != nil {
			return err
		}
		err = tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "space_id"}}, UpdateAll: true}).Create(&row).Error
		if database.IsDuplicate(err) { // another space connected the repository at the same moment
			return errTaken("")
		}
		if err == nil {
			err = tx.Exec("DELETE FROM auth_github_requests WHERE space_id = ?", sp.ID).Error
		}
		if err != nil {
			return fmt.Errorf("connect a repository: %w", err)
		}
		return s.record(tx, Actor{by, via}, "github.link", sp.ID, map[string]any{
			"repository": row.Repository, "name": row.FullName, "installation": row.Installation, "as": row.GithubLogin,
		})
	})
}

// freeRepository returns an error if another space has the repository. If the other space's
// connection no longer works, freeRepository ends it instead: somebody who lost the right to
// push must not block the repository for everybody.
func (s *Store) freeRepository(tx *gorm.DB, by Actor, row githubLinkRow) error {
	var other githubLinkRow
	err := tx.Where("repository = ? AND space_id <> ?", row.Repository, row.SpaceID).Take(&other).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look who has a repository: %w", err)
	}
	if state := auth.LinkState(other.State); state != auth.LinkConnected && state != auth.LinkSuspended {
		return s.unlink(tx, by, "space_id = ?", other.SpaceID)
	}
	sp, err := takeSpace(tx, space.SpaceID(other.SpaceID))
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	if err != nil || sp.OwnerID != row.UserID {
		return errTaken("")
	}
	return errTaken(sp.Name)
}

// errTaken returns the error for a repository that another space has. name is that space's name.
// Only the space's owner may see it, so name is empty for others.
func errTaken(name string) error {
	if name == "" {
		return fault.New(fault.Conflict, "Another space of this server already uses this repository. Choose another repository, or have that space disconnected from it first.")
	}
	return fault.New(fault.Conflict, "Your space %s already uses this repository. Choose another repository, or disconnect that space from it first.", name)
}

// RepositoryLink returns the repository that is connected to a space. It returns false if
// there is none.
func (s *Store) RepositoryLink(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error) {
	var rows []githubLinkRow
	if err := s.db.Read(ctx).Where("space_id = ?", lookup(id)).Limit(1).Find(&rows).Error; err != nil {
		return auth.RepositoryLink{}, false, fmt.Errorf("look up a connected repository: %w", err)
	}
	if len(rows) == 0 {
		return auth.RepositoryLink{}, false, nil
	}
	return rows[0].link(), true, nil
}

// RepositoryLinks returns all connected repositories, sorted by the ids of their spaces.
func (s *Store) RepositoryLinks(ctx context.Context) ([]auth.RepositoryLink, error) {
	var rows []githubLinkRow
	if err := s.db.Read(ctx).Order("space_id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list connected repositories: %w", err)
	}
	out := make([]auth.RepositoryLink, len(rows))
	for i, r := range rows {
		out[i] = r.link()
	}
	return out, nil
}

// UnlinkRepository ends the connection of a space, if it has one.
func (s *Store) UnlinkRepository(ctx context.Context, by space.UserID, via string, id space.SpaceID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		return s.unlink(tx, Actor{by, via}, "space_id = ?", lookup(id))
	})
}

// unlink ends the connections that where selects, and the waits for approval of the same spaces
// or users.
func (s *Store) unlink(tx *gorm.DB, by Actor, where string, arg any) error {
	var rows []githubLinkRow
	err := tx.Where(where, arg).Find(&rows).Error
	if err == nil && len(rows) > 0 {
		err = tx.Exec("DELETE FROM auth_github_links WHERE "+where, arg).Error
	}
	if err == nil {
		err = tx.Exec("DELETE FROM auth_github_requests WHERE "+where, arg).Error
	}
	if err != nil {
		return fmt.Errorf("disconnect a repository: %w", err)
	}
	for _, r := range rows {
		if err := s.record(tx, by, "github.unlink", r.SpaceID, map[string]any{"repository": r.Repository, "name": r.FullName}); err != nil {
			return err
		}
	}
	return nil
}

// UpdateLink stores GitHub's report about a connection, unless the connection was replaced or
// its state changed after the caller read it. changed reports whether UpdateLink stored the
// report. The space, the repository, the GitHub user and the time of connection stay unchanged.
func (s *Store) UpdateLink(ctx context.Context, was, is auth.RepositoryLink) (changed bool, err error) {
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		since := database.Millis(was.Since)
		if is.State != was.State {
			since = database.Millis(s.now())
		}
		done := tx.Exec(`UPDATE auth_github_links SET github_login = ?, account = ?, full_name = ?, state = ?, since = ?, checked = ?
			WHERE space_id = ? AND repository = ? AND installation = ? AND github_user = ? AND created = ? AND state = ? AND since = ?`,
			clean(is.GitHubLogin, 200), clean(is.Account, 200), clean(is.FullName, 300), string(is.State), since, database.Millis(is.Checked),
			string(was.Space), was.Repository, was.Installation, was.GitHubUser, database.Millis(was.Created), string(was.State), database.Millis(was.Since))
		if done.Error != nil {
			return fmt.Errorf("keep how a repository is connected: %w", done.Error)
		}
		changed = done.RowsAffected == 1
		if !changed || is.State == was.State {
			return nil
		}
		return s.record(tx, Actor{Via: "github"}, "github.state", string(was.Space), map[string]any{"from": was.State, "to": is.State, "name": clean(is.FullName, 300)})
	})
	return changed, err
}

// PendingApproval returns since when somebody has been waiting for an approval for a space.
// ok is false if nobody is waiting, or if the request is too old.
func (s *Store) PendingApproval(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error) {
	var rows []githubRequestRow
	err = s.db.Read(ctx).Where("space_id = ? AND created > ?", lookup(id), s.now().Add(-s.o.KeepApprovals).UnixMilli()).Limit(1).Find(&rows).Error
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look up who waits for an approval: %w", err)
	}
	if len(rows) == 0 {
		return time.Time{}, false, nil
	}
	return database.Time(rows[0].Created), true, nil
}
