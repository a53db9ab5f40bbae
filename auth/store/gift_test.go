package store_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// After a transfer, clients and commands keep using the space that they used before.
// Invitations of the former owner stay invalid if the space is given back.
func TestAGiftMovesNothingElse(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.user("ann", true)
		gil, given := w.user("gil", false)
		w.pass(time.Hour)
		bob, own := w.user("bob", false)
		inv := w.invite(store.NewInvitation{By: gil.ID, Space: given.ID, Role: space.Editor})
		w.pass(time.Hour)
		if err := w.GiveSpace(t.Context(), cli, given.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
		if m, err := w.FindSpace(t.Context(), bob.ID, ""); err != nil || m.ID != own.ID {
			t.Errorf("bob's first space is %s, %v", m.Name, err)
		}
		if err := w.GiveSpace(t.Context(), cli, given.ID, gil.ID); err != nil {
			t.Fatal(err)
		}
		_, err := w.PeekInvitation(t.Context(), inv)
		wantCode(t, "an invitation of before", err, fault.NotFound)
	})
}

// Attack: the name of a space is the id of another space.
func TestAnIDMeansItsSpace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, own := w.user("ann", true)
		mallory, _ := w.user("mallory", false)
		trap, err := w.CreateSpace(t.Context(), cli, mallory.ID, space.NewSpaceID(), string(own.ID))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddMember(t.Context(), cli, trap.ID, ann.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		if m, err := w.FindSpace(t.Context(), ann.ID, string(own.ID)); err != nil || m.ID != own.ID {
			t.Errorf("it means %s, %v", m.ID, err)
		}
	})
}

// Attack: another person now has the address to which a link was mailed.
func TestAMailedLinkEndsWithTheAddress(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		link, err := w.CreateLink(t.Context(), cli, ann.ID, "mail", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.SetEmail(t.Context(), cli, ann.ID, "new@example.com"); err != nil {
			t.Fatal(err)
		}
		_, _, err = w.UseLink(t.Context(), link.Reveal())
		wantCode(t, "the link", err, fault.NotFound)
	})
}

// A link that could not be sent does not count.
func TestEndLink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		for range 10 {
			link, err := w.CreateLink(t.Context(), cli, ann.ID, "mail", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.EndLink(t.Context(), link); err != nil {
				t.Fatal(err)
			}
			_, _, err = w.UseLink(t.Context(), link.Reveal())
			wantCode(t, "the link", err, fault.NotFound)
		}
	})
}

// Attack: a member fills the database with keys.
func TestKeysOfOneUserAreBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, own := w.user("ann", true)
		n := store.NewKey{User: ann.ID, Space: own.ID, Scopes: []space.Scope{space.ScopeRead}}
		first, _, err := w.CreateKey(t.Context(), cli, n)
		if err != nil {
			t.Fatal(err)
		}
		err = w.db.Transact(t.Context(), func(tx *gorm.DB) error {
			return tx.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
				INSERT INTO auth_grants (id, user_id, space_id, scopes, name, key_hash, created, expires, revoked, last_used, kind)
				SELECT 'g_bulk' || n.i, g.user_id, g.space_id, g.scopes, '', CAST('hash' || n.i AS `+map[bool]string{true: "BYTEA", false: "BLOB"}[w.db.Kind() == "postgres"]+`), g.created, 0, 0, 0, 'key'
				FROM n, auth_grants g WHERE g.id = ?`, string(first.ID)).Error
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.CreateKey(t.Context(), cli, n)
		wantCode(t, "one too many", err, fault.Limited)
		if err := w.RevokeKey(t.Context(), cli, first.ID, ann.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.CreateKey(t.Context(), cli, n); err != nil {
			t.Errorf("once one was revoked: %v", err)
		}
	})
}
