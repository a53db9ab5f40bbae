package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// sealApp is the purpose that Options.Seal gets when it encrypts or decrypts the App's secrets.
const sealApp = "github app"

type githubAppRow struct {
	One        int64 `gorm:"primaryKey;autoIncrement:false"`
	URL        string
	AppID      int64
	ClientID   string
	Slug, Name string
	Owner      string
	HTMLURL    string
	Creates    bool
	Created    int64
	Secrets    []byte
}

func (githubAppRow) TableName() string { return "auth_github_app" }

// subject returns the text that binds the secrets to the App. They cannot be decrypted for
// another App.
func (r githubAppRow) subject() string { return r.URL + " " + strconv.FormatInt(r.AppID, 10) }

func errNoSeal() error {
	return fault.New(fault.Unavailable, "This server has no key to encrypt the secrets of a GitHub App.")
}

// GitHubApp returns the GitHub App with its secrets. It returns false if there is none. The
// error is a fault.Invalid if another server's key encrypted the secrets.
func (s *Store) GitHubApp(ctx context.Context) (auth.GitHubApp, bool, error) {
	var r githubAppRow
	switch err := s.db.Read(ctx).Take(&r).Error; {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return auth.GitHubApp{}, false, nil
	case err != nil:
		return auth.GitHubApp{}, false, fmt.Errorf("look up the GitHub App: %w", err)
	}
	a := auth.GitHubApp{
		URL: r.URL, ID: r.AppID, ClientID: r.ClientID, Slug: r.Slug, Name: r.Name, Owner: r.Owner, HTMLURL: r.HTMLURL,
		Creates: r.Creates, Created: database.Time(r.Created),
	}
	if s.o.Seal == nil {
		return auth.GitHubApp{}, false, errNoSeal()
	}
	text, err := s.o.Seal.Open(r.Secrets, sealApp, r.subject())
	if err != nil {
		return auth.GitHubApp{}, false, err
	}
	if err := json.Unmarshal(text, &a.Secrets); err != nil {
		return auth.GitHubApp{}, false, errors.New("the GitHub App's secrets are not valid JSON") // without err, which could contain them
	}
	return a, true, nil
}

// SetGitHubApp stores a GitHub App, and sets its time of creation. The error is a
// fault.Conflict if there already is one.
func (s *Store) SetGitHubApp(ctx context.Context, by space.UserID, via string, a auth.GitHubApp) error {
	if s.o.Seal == nil {
		return errNoSeal()
	}
	r := githubAppRow{
		One: 1, URL: a.URL, AppID: a.ID, ClientID: a.ClientID, Slug: clean(a.Slug, 200), Name: clean(a.Name, 200), Owner: clean(a.Owner, 200),
		HTMLURL: a.HTMLURL, Creates: a.Creates, Created: database.Millis(s.now()),
	}
	text, err := json.Marshal(a.Secrets)
	if err != nil {
		return errors.New("the GitHub App's secrets cannot be written")
	}
	if r.Secrets, err = s.o.Seal.Seal(text, sealApp, r.subject()); err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Create(&r).Error; err != nil {
			if database.IsDuplicate(err) {
				return fault.New(fault.Conflict, "This server already has a GitHub App.")
			}
			return fmt.Errorf("keep the GitHub App: %w", err)
		}
		return s.record(tx, Actor{by, via}, "github.app.create", strconv.FormatInt(r.AppID, 10), map[string]any{"name": r.Name, "owner": r.Owner, "url": r.URL})
	})
}

// RemoveGitHubApp deletes the GitHub App, and marks every connected repository as removed.
// Without an App it does nothing.
func (s *Store) RemoveGitHubApp(ctx context.Context, by space.UserID, via string) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		var r githubAppRow
		switch err := tx.Take(&r).Error; {
		case errors.Is(err, gorm.ErrRecordNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("look up the GitHub App: %w", err)
		}
		if err := tx.Exec("DELETE FROM auth_github_app").Error; err != nil {
			return fmt.Errorf("forget the GitHub App: %w", err)
		}
		done := tx.Exec("UPDATE auth_github_links SET state = ?, since = ? WHERE state <> ?", string(auth.LinkRemoved), s.now().UnixMilli(), string(auth.LinkRemoved))
		if done.Error != nil {
			return fmt.Errorf("end what the GitHub App connected: %w", done.Error)
		}
		// Delete these rows after the links, as unlink does, to avoid a deadlock.
		if err := tx.Exec("DELETE FROM auth_github_requests").Error; err != nil {
			return fmt.Errorf("forget who waits for the GitHub App: %w", err)
		}
		return s.record(tx, Actor{by, via}, "github.app.remove", strconv.FormatInt(r.AppID, 10), map[string]any{"name": r.Name, "links": done.RowsAffected})
	})
}

// maxDeliveryID is the maximum length of a webhook's id in bytes. GitHub's ids have 36.
const maxDeliveryID = 100

// SeenDelivery stores the id of a webhook. first reports whether the id was new. The error
// is a fault.Invalid for an invalid id.
func (s *Store) SeenDelivery(ctx context.Context, id string) (first bool, err error) {
	if id == "" || len(id) > maxDeliveryID || !storable(id) {
		return false, fault.New(fault.Invalid, "The delivery has no valid id.")
	}
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		done := tx.Exec("INSERT INTO auth_github_deliveries (id, seen) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", id, s.now().UnixMilli())
		first = done.RowsAffected == 1
		return wrap("remember a webhook", done.Error)
	})
	return first, err
}

type githubRequestRow struct {
	SpaceID string `gorm:"primaryKey"`
	UserID  string
	Created int64
}

func (githubRequestRow) TableName() string { return "auth_github_requests" }

// AskForApproval records that a user waits for an approval to install the GitHub App for a
// space. A second request restarts the wait.
func (s *Store) AskForApproval(ctx context.Context, id space.SpaceID, user space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if _, err := lockUser(tx, s.db.Kind(), user); err != nil {
			return err
		}
		sp, err := takeSpace(tx, id)
		if err != nil {
			return err
		}
		row := githubRequestRow{SpaceID: sp.ID, UserID: string(user), Created: database.Millis(s.now())}
		err = tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "space_id"}}, UpdateAll: true}).Create(&row).Error
		if err != nil {
			return fmt.Errorf("remember who waits for an approval: %w", err)
		}
		return s.record(tx, Actor{user, "web"}, "github.ask", sp.ID, nil)
	})
}
