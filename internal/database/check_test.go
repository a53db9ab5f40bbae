package database_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
)

func TestCheckWrite(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		for range 2 {
			if err := db.CheckWrite(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A database that another program has locked cannot be written.
func TestCheckWriteOfAHeldFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + file, BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckWrite(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("while it is held: %v", err)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckWrite(t.Context()); err != nil {
		t.Error(err)
	}
}

// CheckFile reads a database that is in use, and finds damage in the header of any page.
// Opening the database finds the same damage.
func TestDamagedPagesAreFound(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.db")
	db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + file})
	if err != nil {
		t.Fatal(err)
	}
	migrate(t, db, notes)
	err = db.Transact(t.Context(), func(tx *gorm.DB) error {
		for i := range 200 {
			if err := tx.Create(&note{ID: string(rune('a' + i)), Text: file}).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{database.Quick, database.Thorough} {
		if said, err := database.CheckFile(t.Context(), file, how); err != nil || len(said) > 0 {
			t.Errorf("in use: %q, %v", said, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	if len(whole) < 4*page {
		t.Fatalf("only %d bytes", len(whole))
	}
	for at := 0; at < len(whole); at += page {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 0x40
		copied := filepath.Join(dir, "copy.db")
		if err := os.WriteFile(copied, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := database.CheckFile(t.Context(), copied, database.Thorough); err != nil || len(said) == 0 {
			t.Errorf("page %d: the check finds %q, %v", at/page, said, err)
		}
		db, err := database.Open(t.Context(), database.Options{URL: "sqlite:" + copied})
		if err == nil {
			db.Close()
		}
		if !database.IsDamaged(err) || fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("page %d: %v", at/page, err)
		}
	}
}
