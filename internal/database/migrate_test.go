package database_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
)

func step(version int, sql string) database.Migration {
	return database.Migration{Package: "notes", Version: version, Name: "step", SQLite: sql, Postgres: sql}
}

func TestMigrate(t *testing.T) {
	second := step(2, "ALTER TABLE notes ADD COLUMN tag TEXT NOT NULL DEFAULT ''")
	third := database.Migration{Package: "notes", Version: 3, Name: "fill", Func: func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO notes (id, text, tag) VALUES (?, '', '')", "made by step 3").Error
	}}
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		for _, tt := range []struct {
			name  string
			steps []database.Migration
			want  int
		}{
			{"nothing yet", []database.Migration{notes}, 1},
			{"again", []database.Migration{notes}, 0},
			{"newer program, steps in any order", []database.Migration{third, notes, second}, 2},
			{"a package more", []database.Migration{notes, second, third, {Package: "other", Version: 1, SQLite: "CREATE TABLE other (id INTEGER)", Postgres: "CREATE TABLE other (id INTEGER)"}}, 1},
		} {
			if n, err := db.Migrate(t.Context(), tt.steps...); err != nil || n != tt.want {
				t.Fatalf("%s: applied %d, %v; want %d", tt.name, n, err, tt.want)
			}
		}
		if count(t, db) != 1 {
			t.Fatal("the step in Go did not run once")
		}
		_, err := db.Migrate(t.Context(), notes, second)
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "newer Satchel") {
			t.Fatalf("an older program got %v", err)
		}
	})
}

func TestFailedMigrationLeavesNothing(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		boom := errors.New("boom")
		for name, bad := range map[string]database.Migration{
			"statement": step(2, "CREATE TABLE half (id INTEGER); CREATE TABLE notes (id INTEGER)"),
			"func":      {Package: "notes", Version: 2, Func: func(tx *gorm.DB) error { return boom }},
		} {
			if _, err := db.Migrate(t.Context(), notes, bad); err == nil {
				t.Fatalf("%s: no error", name)
			}
			if n, err := db.Migrate(t.Context(), notes, step(2, "CREATE TABLE half (id INTEGER)")); n != 2 || err != nil {
				t.Fatalf("%s: after the failure %d steps were applied, %v; want 2", name, n, err)
			}
			err := db.Transact(t.Context(), func(tx *gorm.DB) error {
				return errors.Join(tx.Exec("DROP TABLE half").Error, tx.Exec("DROP TABLE notes").Error, tx.Exec("DELETE FROM schema_migrations").Error)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestMigrationsMustCount(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t))
	for name, steps := range map[string][]database.Migration{
		"gap":               {step(1, "SELECT 1"), step(3, "SELECT 1")},
		"twice":             {step(1, "SELECT 1"), step(1, "SELECT 1")},
		"from zero":         {step(0, "SELECT 1")},
		"no package":        {{Version: 1, SQLite: "SELECT 1", Postgres: "SELECT 1"}},
		"one database only": {{Package: "p", Version: 1, SQLite: "SELECT 1"}},
	} {
		if _, err := db.Migrate(t.Context(), steps...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// If two programs start at the same time on a new database, both succeed.
func TestConcurrentMigrations(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": databasetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			u := url(t)
			var wg sync.WaitGroup
			total := make(chan int, 4)
			for range cap(total) {
				db := databasetest.Open(t, u)
				wg.Go(func() {
					n, err := db.Migrate(t.Context(), notes, step(2, "CREATE TABLE more (id INTEGER)"))
					if err != nil {
						t.Error(err)
					}
					total <- n
				})
			}
			wg.Wait()
			close(total)
			sum := 0
			for n := range total {
				sum += n
			}
			if sum != 2 {
				t.Errorf("%d steps were applied in all, want 2", sum)
			}
		})
	}
}
