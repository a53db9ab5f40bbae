package usage_test

import (
	"fmt"
	"testing"
	"time"

	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/usage"
)

// Counts of a day and a client are added up, also after a restart, and end when they are too old.
func TestCounts(t *testing.T) {
	databasetest.Each(t, testCounts)
}

func testCounts(t *testing.T, db *database.DB) {
	if _, err := db.Migrate(t.Context(), usage.Migrations()...); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	start := func() *usage.Counter {
		return usage.New(usage.Options{DB: db, Keep: 10 * 24 * time.Hour, Every: time.Hour, Now: func() time.Time { return now }})
	}
	c := start()
	c.Add("claude-code", usage.Amounts{Calls: 1, Tokens: 10})
	c.Add("claude-code", usage.Amounts{Calls: 1, Searches: 1})
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = start()
	c.Add("claude-code", usage.Amounts{Calls: 1, BashMS: 1500})
	now = now.Add(2 * time.Hour)
	c.Add("", usage.Amounts{Calls: 1})
	got, err := c.Days(t.Context(), 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Client != "claude-code" || got[0].Amounts != (usage.Amounts{Calls: 3, Searches: 1, BashMS: 1500, Tokens: 10}) || got[0].Day.Day() != 1 || got[1].Day.Day() != 2 || got[1].Client == "" {
		t.Errorf("%+v", got)
	}
	now = now.AddDate(0, 0, 11)
	if got, err = c.Days(t.Context(), 365); err != nil || len(got) != 0 {
		t.Errorf("too old: %+v, %v", got, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) *database.DB {
	db := databasetest.Open(t, databasetest.SQLite(t))
	if _, err := db.Migrate(t.Context(), usage.Migrations()...); err != nil {
		t.Fatal(err)
	}
	return db
}

// Attack: a client gives itself a new name with each call.
func TestNamesDoNotFillTheTable(t *testing.T) {
	c := usage.New(usage.Options{DB: open(t), Every: time.Hour})
	defer c.Close(t.Context())
	for i := range 1000 {
		c.Add(fmt.Sprintf("client-%d", i), usage.Amounts{Calls: 1})
	}
	got, err := c.Days(t.Context(), 1)
	if err != nil || len(got) != 101 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	var all int64
	for _, r := range got {
		all += r.Calls
	}
	if all != 1000 {
		t.Errorf("%d calls are counted", all)
	}
}

func BenchmarkAdd(b *testing.B) {
	c := usage.New(usage.Options{DB: open(b), Every: time.Hour})
	defer c.Close(b.Context())
	for b.Loop() {
		c.Add("claude-code", usage.Amounts{Calls: 1, Tokens: 100})
	}
}
