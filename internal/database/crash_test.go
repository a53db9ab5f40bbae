package database_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/database/databasetest"
)

// crashURL turns the test binary into the program that TestKilledWriter kills.
const crashURL = "SATCHEL_TEST_CRASH_DATABASE"

// writeUntilKilled commits one row after another, and prints each. At the end it keeps one
// more transaction open.
func writeUntilKilled(url string) error {
	ctx := context.Background()
	db, err := database.Open(ctx, database.Options{URL: url})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		err := db.Transact(ctx, func(tx *gorm.DB) error {
			if err := tx.Create(&note{ID: fmt.Sprintf("half-%d", i)}).Error; err != nil {
				return err
			}
			if i == 50 {
				fmt.Println("open")
				select {} // until the test kills this process
			}
			if err := tx.Where("id = ?", fmt.Sprintf("half-%d", i)).Delete(&note{}).Error; err != nil {
				return err
			}
			return tx.Create(&note{ID: fmt.Sprintf("whole-%d", i)}).Error
		})
		if err != nil {
			return err
		}
		fmt.Println("committed", i)
	}
}

// Attack: kill -9 in the middle of a transaction. Acknowledged rows are there, other rows
// are not, and the next program can write.
func TestKilledWriter(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, first *database.DB) {
		url := databasetest.SQLite(t)
		if first.Kind() == database.Postgres {
			url = databasetest.Postgres(t)
		}
		db := databasetest.Open(t, url)
		migrate(t, db, notes)
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), crashURL+"="+url)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "open" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				break
			}
			acknowledged++
		}
		cmd.Wait()
		if acknowledged != 50 {
			t.Fatalf("the writer committed %d times, not 50", acknowledged)
		}
		err = db.Transact(t.Context(), func(tx *gorm.DB) error { return tx.Create(&note{ID: "after"}).Error })
		if err != nil {
			t.Fatalf("the next program cannot write: %v", err)
		}
		var rows []note
		if err := db.Read(t.Context()).Find(&rows).Error; err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if strings.HasPrefix(r.ID, "half") {
				t.Errorf("half a transaction is there: %s", r.ID)
			}
		}
		if len(rows) != acknowledged+1 {
			t.Errorf("%d rows are there, want %d", len(rows), acknowledged+1)
		}
	})
}
