package database_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(crashURL); url != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(url))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

type note struct {
	ID   string `gorm:"primaryKey"`
	Text string
}

func (note) TableName() string { return "notes" }

var notes = database.Migration{
	Package: "notes", Version: 1, Name: "make notes",
	SQLite:   "CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT NOT NULL); CREATE INDEX notes_text ON notes (text)",
	Postgres: "CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT NOT NULL); CREATE INDEX notes_text ON notes (text)",
}

func migrate(t *testing.T, db *database.DB, steps ...database.Migration) {
	t.Helper()
	if _, err := db.Migrate(t.Context(), steps...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *database.DB) int64 {
	t.Helper()
	var n int64
	if err := db.Read(t.Context()).Model(&note{}).Count(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTransactCommitsAllOrNothing(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		migrate(t, db, notes)
		add := func(tx *gorm.DB, id string) error { return tx.Create(&note{ID: id, Text: "x"}).Error }

		boom := errors.New("boom")
		err := db.Transact(t.Context(), func(tx *gorm.DB) error { return errors.Join(add(tx, "1"), boom) })
		if !errors.Is(err, boom) || count(t, db) != 0 {
			t.Fatalf("an error of fn: got %v and %d rows, want boom and none", err, count(t, db))
		}
		func() {
			defer func() {
				if recover() != "panicked" {
					t.Fatal("the panic of fn was not passed on")
				}
			}()
			db.Transact(t.Context(), func(tx *gorm.DB) error { add(tx, "1"); panic("panicked") })
		}()
		if n := count(t, db); n != 0 {
			t.Fatalf("a panic of fn left %d rows", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = db.Transact(ctx, func(tx *gorm.DB) error { defer cancel(); return add(tx, "1") })
		if fault.CodeOf(err) != fault.Canceled || !errors.Is(err, context.Canceled) || count(t, db) != 0 {
			t.Fatalf("an ended context: got %v and %d rows, want canceled and none", err, count(t, db))
		}
		// The pool still works after all that.
		if err := db.Transact(t.Context(), func(tx *gorm.DB) error { return add(tx, "1") }); err != nil || count(t, db) != 1 {
			t.Fatalf("a good transaction: %v and %d rows", err, count(t, db))
		}
		err = db.Transact(t.Context(), func(tx *gorm.DB) error { return add(tx, "1") })
		if !database.IsDuplicate(err) {
			t.Fatalf("a second row with the same key: IsDuplicate(%v) is false", err)
		}
		if err := db.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		migrate(t, db, notes)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 20 {
					err := db.Transact(t.Context(), func(tx *gorm.DB) error {
						return tx.Create(&note{ID: fmt.Sprint(w, "-", i)}).Error
					})
					if err != nil {
						t.Error(err)
					}
					if err := db.Read(t.Context()).First(&note{}).Error; err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := count(t, db); n != 160 {
			t.Fatalf("%d rows of 160 are there", n)
		}
	})
}

func TestSQLiteFile(t *testing.T) {
	dir := t.TempDir()
	// The name contains every byte that has a meaning in a URI, a DSN or a shell.
	name := "odd ?_pragma=x&%41#;'.db"
	if runtime.GOOS == "windows" {
		name = "odd %41#;'.db"
	}
	path := filepath.Join(dir, name)
	db := databasetest.Open(t, "sqlite:"+path)
	migrate(t, db, notes)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("the database is not where its URL says: %v", err)
	}
	if runtime.GOOS != "windows" {
		for _, p := range []string{path, path + "-wal"} {
			if info, err = os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v; want mode 0600", filepath.Base(p), info.Mode(), err)
			}
		}
	}
	pragma := func(db *gorm.DB, name string) (v string) {
		if err := db.Raw("PRAGMA " + name).Scan(&v).Error; err != nil {
			t.Fatal(err)
		}
		return v
	}
	err = db.Transact(t.Context(), func(tx *gorm.DB) error {
		for name, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000"} {
			if got := pragma(tx, name); got != want {
				t.Errorf("writer: %s is %s, want %s", name, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := pragma(db.Read(t.Context()), "query_only"); got != "1" {
		t.Errorf("readers may write")
	}
	if err := db.Read(t.Context()).Create(&note{ID: "1"}).Error; err == nil {
		t.Error("a write through Read was not refused")
	}
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		migrate(t, db, notes)
		err := db.Transact(t.Context(), func(tx *gorm.DB) error {
			if err := tx.Create(&note{ID: "1"}).Error; err != nil {
				return err
			}
			if n := count(t, db); n != 0 {
				t.Errorf("a reader saw %d uncommitted rows", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnotherProgramHoldsTheFile(t *testing.T) {
	url := databasetest.SQLite(t)
	first := databasetest.Open(t, url)
	migrate(t, first, notes)
	second, err := database.Open(t.Context(), database.Options{URL: url, BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	err = first.Transact(t.Context(), func(*gorm.DB) error {
		err := second.Transact(t.Context(), func(*gorm.DB) error { return nil })
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("got %v, want unavailable", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBadURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, bytes.Repeat([]byte("not a database\n"), 200), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, url string
		want      fault.Code
	}{
		{"nothing", "", fault.Invalid},
		{"no scheme", "/var/lib/satchel.db", fault.Invalid},
		{"unknown scheme", "mysql://root:hunter2@localhost/db", fault.Invalid},
		{"no file", "sqlite:", fault.Invalid},
		{"NUL in the file", "sqlite:a\x00b", fault.Invalid},
		{"no host", "postgres://", fault.Invalid},
		{"malformed", "postgres://u:hunter2@host:port/x", fault.Invalid},
		{"unknown TLS mode", "postgres://u:hunter2@host/x?sslmode=maybe", fault.Invalid},
		{"missing directory", "sqlite:" + filepath.Join(t.TempDir(), "no", "x.db"), fault.Unavailable},
		{"no database", "sqlite:" + file, fault.Unavailable},
		{"nobody listens", "postgres://u:hunter2@127.0.0.1:1/x", fault.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, err := database.Open(t.Context(), database.Options{URL: tt.url})
			if err == nil {
				db.Close()
			}
			if fault.CodeOf(err) != tt.want {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("the error tells the password: %v", err)
			}
		})
	}
}

func TestLogHoldsNoValues(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, opened *database.DB) {
		var out bytes.Buffer
		url := databasetest.SQLite(t)
		if opened.Kind() == database.Postgres {
			url = databasetest.Postgres(t)
		}
		db, err := database.Open(t.Context(), database.Options{
			URL: url, Slow: 1, // every query is slow
			Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		migrate(t, db, notes)
		for range 2 { // the second call fails
			db.Transact(t.Context(), func(tx *gorm.DB) error {
				return tx.Create(&note{ID: "key-canary", Text: "value-canary"}).Error
			})
		}
		db.Read(t.Context()).Where("text = ?", "value-canary").First(&note{})
		db.Read(t.Context()).Exec("SELECT no_such_column FROM notes WHERE id = ?", "key-canary")
		if !strings.Contains(out.String(), "INSERT INTO") || !strings.Contains(out.String(), "no_such_column") {
			t.Errorf("statements are not logged:\n%s", &out)
		}
		if strings.Contains(out.String(), "canary") {
			t.Errorf("the log holds values:\n%s", &out)
		}
	})
}

func TestTimesAreWholeMilliseconds(t *testing.T) {
	now := time.Date(2026, 11, 20, 1, 2, 3, 4_999_999, time.FixedZone("", 3600))
	if got := database.Time(database.Millis(now)); !got.Equal(now.Truncate(time.Millisecond)) || got.Location() != time.UTC {
		t.Errorf("got %v", got)
	}
	if !database.Time(database.Millis(time.Time{})).IsZero() {
		t.Error("the zero time does not survive")
	}
}
