package database

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"satchel/internal/fault"
)

// Migration is one change to a package's tables. It cannot be undone. A released
// migration is never changed; a later one corrects it.
type Migration struct {
	// Package is the owner of the tables: its import path within the module.
	Package string
	// Version counts the package's steps from 1 without gaps.
	Version int
	// Name describes the step for people.
	Name string
	// SQLite and Postgres are the statements for each database, separated by semicolons.
	SQLite, Postgres string
	// Func, if it is set, runs after the statements, in the same transaction.
	Func func(tx *gorm.DB) error
}

const appliedTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
	package TEXT NOT NULL,
	version INTEGER NOT NULL,
	name TEXT NOT NULL,
	applied BIGINT NOT NULL,
	PRIMARY KEY (package, version)
)`

// migrateLock is a PostgreSQL advisory lock. If programs start at the same time, it makes
// them migrate one after another. Its value is "satchel" as bytes. On SQLite, BEGIN
// IMMEDIATE does the same.
const migrateLock = 0x7361746368656c

type appliedRow struct {
	Package string
	Version int
	Name    string
	Applied int64
}

// Migrate applies the steps that the database does not have yet, in one transaction: all of
// them or none. Packages migrate in the order in which their first steps are given. Migrate
// returns how many steps it applied.
//
// The error is a fault.Unavailable if the database has a step that this program does not
// know, because a newer program applied it.
func (d *DB) Migrate(ctx context.Context, steps ...Migration) (int, error) {
	packages, err := group(steps)
	if err != nil {
		return 0, err
	}
	n := 0
	err = d.Transact(ctx, func(tx *gorm.DB) error {
		n = 0
		if d.kind == Postgres {
			if err := exec(ctx, tx, "SELECT pg_advisory_xact_lock($1)", int64(migrateLock)); err != nil {
				return fmt.Errorf("lock migrations: %w", err)
			}
		}
		if err := exec(ctx, tx, appliedTable); err != nil {
			return fmt.Errorf("make schema_migrations: %w", err)
		}
		for _, p := range packages {
			k, err := d.migratePackage(ctx, tx, p)
			if err != nil {
				return err
			}
			n += k
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("migrate database: %w", err)
	}
	return n, nil
}

// group splits steps by package. It checks that the versions of each package count from 1, and
// that each step does something on both databases.
func group(steps []Migration) ([][]Migration, error) {
	var packages [][]Migration
	at := map[string]int{}
	for _, m := range steps {
		i, seen := at[m.Package]
		if !seen {
			i = len(packages)
			at[m.Package] = i
			packages = append(packages, nil)
		}
		packages[i] = append(packages[i], m)
	}
	for _, p := range packages {
		slices.SortStableFunc(p, func(a, b Migration) int { return a.Version - b.Version })
		for i, m := range p {
			if m.Package == "" || m.Version != i+1 {
				return nil, fmt.Errorf("migrations of package %q: version %d where %d belongs", m.Package, m.Version, i+1)
			}
			if m.Func == nil && (m.SQLite == "" || m.Postgres == "") {
				return nil, fmt.Errorf("migration %s %d (%s) has nothing to do on one of the databases", m.Package, m.Version, m.Name)
			}
		}
	}
	return packages, nil
}

func (d *DB) migratePackage(ctx context.Context, tx *gorm.DB, steps []Migration) (int, error) {
	name := steps[0].Package
	var done []appliedRow
	if err := tx.Table("schema_migrations").Where("package = ?", name).Order("version").Find(&done).Error; err != nil {
		return 0, fmt.Errorf("read schema_migrations: %w", err)
	}
	if len(done) > len(steps) {
		newest := done[len(done)-1]
		return 0, fault.New(fault.Unavailable,
			"The database was made by a newer Satchel: its tables of %s are at version %d (%s), and this program knows %d. Run the newer program, or restore a backup made by this one.",
			name, newest.Version, newest.Name, len(steps))
	}
	for i, row := range done {
		if row.Version != i+1 {
			return 0, fmt.Errorf("schema_migrations lacks version %d of package %s", i+1, name)
		}
	}
	todo := steps[len(done):]
	for _, m := range todo {
		stmts := m.SQLite
		if d.kind == Postgres {
			stmts = m.Postgres
		}
		if stmts != "" {
			if err := exec(ctx, tx, stmts); err != nil {
				return 0, fmt.Errorf("migration %s %d (%s): %w", m.Package, m.Version, m.Name, err)
			}
		}
		if m.Func != nil {
			if err := m.Func(tx); err != nil {
				return 0, fmt.Errorf("migration %s %d (%s): %w", m.Package, m.Version, m.Name, err)
			}
		}
		row := appliedRow{Package: m.Package, Version: m.Version, Name: m.Name, Applied: Millis(time.Now())}
		if err := tx.Table("schema_migrations").Create(&row).Error; err != nil {
			return 0, fmt.Errorf("record migration %s %d: %w", m.Package, m.Version, err)
		}
	}
	return len(todo), nil
}

// exec runs statements unchanged. gorm would replace a question mark or an at sign in them with
// a value.
func exec(ctx context.Context, tx *gorm.DB, stmts string, args ...any) error {
	_, err := tx.Statement.ConnPool.ExecContext(ctx, stmts, args...)
	return err
}
