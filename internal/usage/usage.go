// Package usage counts what clients do, by client and day. Counter.Add counts, and Counter.Days
// returns the counts. They are in the server's database, so that they survive a restart.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"gorm.io/gorm"

	"satchel/internal/database"
)

// Defaults of Options.
const (
	DefaultKeep  = 400 * day
	DefaultEvery = time.Minute
)

// Limits of what is counted. A client chooses its own name, so its names must not fill the table.
const (
	maxNames = 100 // of clients on one day; the counts of others have the name Others
	maxName  = 60  // characters
	day      = 24 * time.Hour
)

// flushTime limits one write of the counts, so that a database that hangs does not stop the
// counter.
const flushTime = 30 * time.Second

// Others is the name of the clients that are not counted by their own name.
const Others = "other clients"

// Amounts is what clients did.
type Amounts struct {
	Calls    int64 `json:"calls"`
	Searches int64 `json:"searches"`
	BashMS   int64 `json:"bash_ms"` // how long commands ran, in milliseconds
	Tokens   int64 `json:"tokens"`  // of the answers, estimated
}

func (a *Amounts) add(b Amounts) {
	a.Calls += b.Calls
	a.Searches += b.Searches
	a.BashMS += b.BashMS
	a.Tokens += b.Tokens
}

// Row is what one client did on one day.
type Row struct {
	Day    time.Time `json:"day"` // its beginning, in UTC
	Client string    `json:"client"`
	Amounts
}

// Options configure a Counter.
type Options struct {
	DB     *database.DB
	Keep   time.Duration // how long days are kept; 0 means DefaultKeep
	Every  time.Duration // how often counts are written; 0 means DefaultEvery
	Now    func() time.Time
	Logger *slog.Logger
}

// Counter counts in memory, and writes the counts to the database at intervals of Options.Every.
// Its methods are safe for concurrent use.
type Counter struct {
	o    Options
	stop chan struct{}
	done chan struct{}
	once sync.Once

	mu     sync.Mutex
	counts map[key]*Amounts
	names  map[int64]map[string]bool // the names that are counted on each day
	swept  int64                     // the last day on which old days were deleted

	writing sync.Mutex // held while counts are neither in memory nor in the database
}

type key struct {
	day    int64 // the number of days since 1970
	client string
}

// New returns a Counter. The caller must close it.
func New(o Options) *Counter {
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Counter{o: o, stop: make(chan struct{}), done: make(chan struct{}), counts: map[key]*Amounts{}, names: map[int64]map[string]bool{}}
	go c.run()
	return c
}

func (c *Counter) run() {
	defer close(c.done)
	tick := time.NewTicker(c.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(context.Background(), flushTime)
			if err := c.Flush(ctx); err != nil {
				c.o.Logger.Warn("usage was not written; it will be tried again", "error", err)
			}
			cancel()
		}
	}
}

// Close stops the Counter and writes the remaining counts. It gives up when ctx ends.
func (c *Counter) Close(ctx context.Context) error {
	if c == nil {
		return nil
	}
	var err error
	c.once.Do(func() {
		close(c.stop)
		select {
		case <-c.done:
			err = c.Flush(ctx)
		case <-ctx.Done():
			err = fmt.Errorf("write usage: %w", ctx.Err())
		}
	})
	return err
}

// Add counts what a client did now. client is the name that the client gives itself.
func (c *Counter) Add(client string, a Amounts) {
	today := dayOf(c.o.Now())
	client = shown(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names[today]
	if names == nil {
		names = map[string]bool{}
		c.names = map[int64]map[string]bool{today: names}
	}
	if !names[client] {
		if len(names) >= maxNames {
			client = Others
		} else {
			names[client] = true
		}
	}
	k := key{today, client}
	if c.counts[k] == nil {
		c.counts[k] = &Amounts{}
	}
	c.counts[k].add(a)
}

// shown returns a client's name as text that a page can show.
func shown(name string) string {
	name = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(name, ""), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName])
	}
	if name == "" {
		return "a client without a name"
	}
	return name
}

func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }

// Flush writes what is counted, and deletes days that are too old.
func (c *Counter) Flush(ctx context.Context) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	today := dayOf(c.o.Now())
	c.mu.Lock()
	counts := c.counts
	c.counts = map[key]*Amounts{}
	sweep := c.swept != today
	c.mu.Unlock()
	if len(counts) == 0 && !sweep {
		return nil
	}
	err := c.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		// Two servers that write the same rows in different orders would wait for each other.
		order := slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
			return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.client, b.client))
		})
		for _, k := range order {
			a := counts[k]
			err := tx.Exec(`INSERT INTO usage_days (day, client, calls, searches, bash_ms, tokens) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (day, client) DO UPDATE SET calls = usage_days.calls + excluded.calls, searches = usage_days.searches + excluded.searches,
				bash_ms = usage_days.bash_ms + excluded.bash_ms, tokens = usage_days.tokens + excluded.tokens`,
				k.day, k.client, a.Calls, a.Searches, a.BashMS, a.Tokens).Error
			if err != nil {
				return err
			}
		}
		return tx.Exec("DELETE FROM usage_days WHERE day < ?", today-int64(c.o.Keep/day)).Error
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		for k, a := range counts { // keep the counts for the next write
			if now := c.counts[k]; now != nil {
				a.add(*now)
			}
			c.counts[k] = a
		}
		return fmt.Errorf("write usage: %w", err)
	}
	c.swept = today
	return nil
}

// Days lists what each client did on each of the last n days, including today. The oldest day
// comes first.
func (c *Counter) Days(ctx context.Context, n int) ([]Row, error) {
	if err := c.Flush(ctx); err != nil {
		return nil, err
	}
	var rows []struct {
		Day, Calls, Searches, BashMs, Tokens int64
		Client                               string
	}
	err := c.o.DB.Read(ctx).Raw("SELECT day, client, calls, searches, bash_ms, tokens FROM usage_days WHERE day > ? ORDER BY day, client", dayOf(c.o.Now())-int64(n)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	out := make([]Row, len(rows))
	for i, r := range rows {
		out[i] = Row{time.Unix(r.Day*int64(day/time.Second), 0).UTC(), r.Client, Amounts{Calls: r.Calls, Searches: r.Searches, BashMS: r.BashMs, Tokens: r.Tokens}}
	}
	return out, nil
}

// Migrations returns the migrations of this package's table, for database.Migrate.
func Migrations() []database.Migration {
	const table = `
CREATE TABLE usage_days (
	day BIGINT NOT NULL,
	client TEXT NOT NULL,
	calls BIGINT NOT NULL,
	searches BIGINT NOT NULL,
	bash_ms BIGINT NOT NULL,
	tokens BIGINT NOT NULL,
	PRIMARY KEY (day, client)
);`
	return []database.Migration{{Package: "internal/usage", Version: 1, Name: "daily usage of clients", SQLite: table, Postgres: table}}
}
