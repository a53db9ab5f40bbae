package store_test

import (
	"testing"

	"gorm.io/gorm"

	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
)

// A database from before the sign-ins keeps its users and their keys.
func TestMigrateFromVersion1(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		if _, err := db.Migrate(t.Context(), store.Migrations()[:1]...); err != nil {
			t.Fatal(err)
		}
		err := db.Transact(t.Context(), func(tx *gorm.DB) error {
			for _, stmt := range []string{
				`INSERT INTO auth_users VALUES ('u_1', 'local', 'u_1', 'ann', '', 'Ann@Example.com', TRUE, 1, 0)`,
				`INSERT INTO auth_users VALUES ('u_2', 'https://issuer.example', 'bob-1', 'bob', 'Bob', '', FALSE, 1, 0)`,
				`INSERT INTO auth_users VALUES ('u_3', 'https://issuer.example', 'bob-1', 'bob', 'Bob', '', FALSE, 1, 2)`,
				`INSERT INTO auth_spaces VALUES ('s_1', 'ann', 'u_1', 1)`,
				`INSERT INTO auth_members VALUES ('s_1', 'u_1', 'owner', 1)`,
				`INSERT INTO auth_grants VALUES ('g_1', 'u_1', 's_1', 'read', 'laptop', NULL, 1, 0, 0, 0)`,
			} {
				if err := tx.Exec(stmt).Error; err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, db)
		bob, err := w.UserByIdentity(t.Context(), "https://issuer.example", "bob-1")
		if err != nil || bob.ID != "u_2" || bob.Admitted != "command" || !bob.Suspended.IsZero() {
			t.Errorf("bob signs in as %+v, %v", bob, err)
		}
		if list, err := w.Identities(t.Context(), "u_2"); err != nil || len(list) != 1 || list[0].Label != "Bob" {
			t.Errorf("bob's identities: %+v, %v", list, err)
		}
		if ann, err := w.UserByEmail(t.Context(), "ann@example.com"); err != nil || ann.ID != "u_1" {
			t.Errorf("ann by address: %+v, %v", ann, err)
		}
		if w.count("auth_identities") != 1 {
			t.Error("a local or a removed user has an identity")
		}
		if grants, err := w.Grants(t.Context(), "u_1"); err != nil || len(grants) != 1 || grants[0].Kind != "key" || grants[0].Client != "" {
			t.Errorf("ann's grants: %+v, %v", grants, err)
		}
	})
}
