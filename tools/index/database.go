package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"modernc.org/sqlite"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// schemaVersion changes whenever the tables or the analysis of text do; a
// database of another version is rebuilt.
const schemaVersion = 7

// chunkBits is how many bits of a chunk's id number it within its document:
// id = document << chunkBits | number.
const chunkBits = 12

// The texts of pages are apart from what is scanned for filters. The inverted
// index is segments, whose rows are in blocks (see the package segment). Ids of
// documents and numbers of rows only grow: what was deleted stays in its segment
// until that is merged, and is in dead until then. The columns head, link and sum
// are checksums; see fields.
var schema = []string{
	`CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID`,
	`CREATE TABLE docs(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, blob TEXT NOT NULL, title TEXT NOT NULL,
		description TEXT NOT NULL, tags TEXT NOT NULL, files TEXT NOT NULL, kind TEXT NOT NULL, lang TEXT NOT NULL,
		version TEXT NOT NULL, date INTEGER NOT NULL, lines INTEGER NOT NULL, head INTEGER NOT NULL, link INTEGER NOT NULL, sum INTEGER NOT NULL)`,
	`CREATE INDEX docs_files ON docs(id) WHERE files <> ''`,
	`CREATE TABLE texts(id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, text BLOB NOT NULL)`,
	`CREATE TABLE chunks(id INTEGER PRIMARY KEY, start INTEGER NOT NULL, end INTEGER NOT NULL, line0 INTEGER NOT NULL,
		line1 INTEGER NOT NULL, crumbs TEXT NOT NULL, anchors TEXT NOT NULL, sum INTEGER NOT NULL, tokens BLOB NOT NULL)`,
	`CREATE TABLE segments(id INTEGER PRIMARY KEY, head BLOB NOT NULL)`,
	`CREATE TABLE blocks(id INTEGER PRIMARY KEY, data BLOB NOT NULL)`,
	`CREATE TABLE dead(doc INTEGER PRIMARY KEY)`,
}

// database is one open generation of a collection's index. It is closed, and
// its file removed where a newer one replaced it, when its last user is done.
type database struct {
	file  string
	write *sql.DB // one connection
	read  *sql.DB
	stmts *statements
	cache *rowCache // of the Index

	scratch spares[scratch]

	mu      sync.Mutex
	users   int
	retired bool
	remove  bool
	closed  chan struct{}

	state state // what readers see; guarded by mu, as what follows is
	view  *view
	langs map[string]int64 // documents by language; nil: not counted yet
}

// state is what a database says about itself.
type state struct {
	commit space.CommitID
	docs   int64
	chunks int64
	length [parse.FieldCount]int64 // terms in each field, summed over all chunks
	next   int64                   // the id of the next document
	rows   int64                   // the number of the next row of a segment
	epoch  int64                   // how often the database was written

	segments int64 // how many there are
	dead     int64 // the sum of deadMark over the table dead

	unread int64 // documents without a blob, because the source could not read them
}

func dsn(file string, pragmas ...string) string {
	s := "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() + "?_pragma=busy_timeout(5000)"
	for _, p := range pragmas {
		s += "&_pragma=" + p
	}
	return s
}

// createFile makes an empty database for a build: it has no journal, since a
// build that does not end leaves nothing that anyone reads.
func createFile(ctx context.Context, file string) (_ *sql.DB, err error) {
	// SQLite makes files that others may read; its journals take the file's mode.
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make index: %w", err)
	}
	defer func() {
		if err != nil {
			removeFile(file)
		}
	}()
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("make index: %w", err)
	}
	w, err := sql.Open("sqlite", dsn(file, "journal_mode(off)", "synchronous(off)", "locking_mode(exclusive)", "cache_size(-32768)", "temp_store(memory)"))
	if err != nil {
		return nil, err
	}
	w.SetMaxOpenConns(1)
	for _, q := range schema {
		if _, err := w.ExecContext(ctx, q); err != nil {
			return nil, errors.Join(fmt.Errorf("make index tables: %w", err), w.Close())
		}
	}
	return w, nil
}

// fingerprint names everything that a database's content depends on.
func (o Options) fingerprint() string { return fmt.Sprintf("%d/%d", schemaVersion, o.MaxChunks) }

// errSchema means that a database was made by another version.
var errSchema = errors.New("index has another schema")

// openFile opens a whole database for queries and updates.
func openFile(ctx context.Context, file string, o Options, cache *rowCache) (_ *database, err error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	d := &database{file: file, closed: make(chan struct{}), cache: cache}
	defer func() {
		if err != nil {
			d.closeHandles()
		}
	}()
	if d.write, err = sql.Open("sqlite", dsn(file, "journal_mode(wal)", "synchronous(normal)", "cache_size(-4096)")+"&mode=rw&_txlock=immediate"); err != nil {
		return nil, err
	}
	d.write.SetMaxOpenConns(1)
	if d.state, err = loadState(ctx, d.write, o); err != nil {
		return nil, err
	}
	if d.view, err = loadView(ctx, d.write, d.state); err != nil {
		return nil, err
	}
	if d.read, err = sql.Open("sqlite", dsn(file, "query_only(1)", fmt.Sprintf("cache_size(-%d)", max(1, o.CacheBytes/4/1024)))+"&mode=rw"); err != nil {
		return nil, err
	}
	d.read.SetMaxOpenConns(o.Readers)
	d.read.SetMaxIdleConns(o.Readers)
	d.stmts, err = prepare(ctx, d.read)
	return d, err
}

type queryer interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
}

func loadState(ctx context.Context, q queryer, o Options) (s state, err error) {
	rows, err := q.QueryContext(ctx, `SELECT key, value FROM meta`)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	version, sum := "", int64(0)
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			return s, err
		}
		n, _ := strconv.ParseInt(v, 10, 64) // the checksum tells
		switch k {
		case "schema":
			version = v
		case "commit":
			s.commit = space.CommitID(v)
		case "docs":
			s.docs = n
		case "chunks":
			s.chunks = n
		case "title":
			s.length[parse.FieldTitle] = n
		case "crumb":
			s.length[parse.FieldCrumb] = n
		case "body":
			s.length[parse.FieldBody] = n
		case "next":
			s.next = n
		case "rows":
			s.rows = n
		case "epoch":
			s.epoch = n
		case "segments":
			s.segments = n
		case "dead":
			s.dead = n
		case "unread": // absent from databases of older versions
			s.unread = n
		case "sum":
			sum = n
		}
	}
	if err := rows.Err(); err != nil {
		return s, err
	}
	if version != o.fingerprint() {
		return s, fmt.Errorf("%w: %q", errSchema, version)
	}
	return s, s.fields().check(sum, nil, "state of commit", s.epoch)
}

func storeState(ctx context.Context, tx *sql.Tx, s state, o Options) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO meta(key, value) VALUES ('schema',?),('commit',?),('docs',?),('chunks',?),('title',?),('crumb',?),('body',?),('next',?),('rows',?),('epoch',?),('segments',?),('dead',?),('unread',?),('sum',?)`,
		o.fingerprint(), string(s.commit), s.docs, s.chunks, s.length[parse.FieldTitle], s.length[parse.FieldCrumb], s.length[parse.FieldBody], s.next, s.rows, s.epoch,
		s.segments, s.dead, s.unread, s.fields().sum(nil))
	return err
}

// acquire counts a user; ok is false if the database is going away.
func (d *database) acquire() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retired {
		return false
	}
	d.users++
	return true
}

func (d *database) release() {
	d.mu.Lock()
	d.users--
	last := d.users == 0 && d.retired
	d.mu.Unlock()
	if last {
		d.finish()
	}
}

// retire closes the database once nobody uses it, and removes its file if
// asked to. closed tells when.
func (d *database) retire(remove bool) {
	d.mu.Lock()
	first := !d.retired
	d.retired = true
	d.remove = d.remove || remove
	idle := d.users == 0
	d.mu.Unlock()
	if first && idle {
		d.finish()
	}
}

func (d *database) finish() {
	d.closeHandles()
	d.cache.forget(d)
	if d.remove {
		removeFile(d.file)
	}
	close(d.closed)
}

func (d *database) closeHandles() {
	d.stmts.close()
	if d.read != nil {
		d.read.Close()
	}
	if d.write != nil {
		d.write.Close()
	}
}

// removeFile removes a database with its journals. What is left over is tried
// again at the next start.
func removeFile(file string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		os.Remove(file + suffix)
	}
}

// current returns what readers see.
func (d *database) current() state {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// currentView returns what readers see, for the next update.
func (d *database) currentView() (state, *view) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.view
}

// advance tells readers of a committed update.
func (d *database) advance(s state, v *view) {
	d.mu.Lock()
	d.state, d.view, d.langs = s, v, nil
	d.mu.Unlock()
}

// damaged reports whether err means that a database file is not what we wrote.
func damaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqliteError:
			return strings.Contains(e.Error(), "no such") // a table or a column
		case sqliteCorrupt, sqliteNotADB, sqliteFormat, sqliteCantOpen, sqliteIOErr:
			return true
		case sqliteConstraint, sqliteMismatch: // rows that contradict one another
			return true
		}
	}
	var number *strconv.NumError // a text where we wrote a number
	if errors.As(err, &number) {
		return true
	}
	// A value of another type than we wrote, for which database/sql has no type.
	if strings.Contains(err.Error(), "sql: Scan error") {
		return true
	}
	// A row that is missing is one that another table names.
	return errors.Is(err, errSchema) || errors.Is(err, os.ErrNotExist) || errors.Is(err, sql.ErrNoRows) || errors.Is(err, segment.ErrDamaged)
}

// Primary result codes of SQLite (sqlite.org/rescode.html).
const (
	sqliteError      = 1
	sqliteIOErr      = 10
	sqliteCorrupt    = 11
	sqliteCantOpen   = 14
	sqliteConstraint = 19
	sqliteMismatch   = 20
	sqliteFormat     = 24
	sqliteNotADB     = 26
)
