package postings

import (
	"cmp"
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

	"satchel/internal/freelist"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// schemaVersion must change when the tables or the analysis of text change. A database of
// another version is rebuilt.
const schemaVersion = 11

// ChunkBits is how many bits of a chunk's id hold its number within the document:
// id = document << ChunkBits | number.
const ChunkBits = 12

// The texts of pages are in a table of their own, because filters scan docs. The table blocks
// contains the rows of segments (see the package segment). Ids of documents and numbers of
// rows only grow. A deleted document stays in its segment until the segment is merged, and
// is in the table dead until then. The columns head, link and sum are checksums; see fields.
var schema = []string{
	`CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID`,
	`CREATE TABLE docs(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, blob TEXT NOT NULL, title TEXT NOT NULL,
		description TEXT NOT NULL, url TEXT NOT NULL, tags TEXT NOT NULL, files TEXT NOT NULL, kind TEXT NOT NULL, lang TEXT NOT NULL,
		version TEXT NOT NULL, date INTEGER NOT NULL, lines INTEGER NOT NULL, head INTEGER NOT NULL, link INTEGER NOT NULL, sum INTEGER NOT NULL)`,
	`CREATE INDEX docs_files ON docs(id) WHERE files <> ''`,
	`CREATE TABLE texts(id INTEGER PRIMARY KEY, sum INTEGER NOT NULL, text BLOB NOT NULL)`,
	`CREATE TABLE chunks(id INTEGER PRIMARY KEY, start INTEGER NOT NULL, end INTEGER NOT NULL, line0 INTEGER NOT NULL,
		line1 INTEGER NOT NULL, crumbs TEXT NOT NULL, anchors TEXT NOT NULL, sum INTEGER NOT NULL, tokens BLOB NOT NULL)`,
	`CREATE TABLE segments(id INTEGER PRIMARY KEY, head BLOB NOT NULL)`,
	`CREATE TABLE blocks(id INTEGER PRIMARY KEY, data BLOB NOT NULL)`,
	`CREATE TABLE dead(doc INTEGER PRIMARY KEY)`,
}

// Options holds the limits of databases. The zero value of a field means its default;
// only tests set other values.
type Options struct {
	// CacheBytes is the size of the cache that all databases share. Each of the Readers of a
	// database also keeps SQLite's pages, up to an eighth of this size.
	CacheBytes int
	// BuildBytes is about how much memory the postings of one build or update can take
	// before they are written as a segment.
	BuildBytes int
	// Readers is how many queries can read one database at once.
	Readers int
}

// WithDefaults returns the options with the defaults filled in.
func (o Options) WithDefaults() Options {
	o.CacheBytes = cmp.Or(o.CacheBytes, 16<<20)
	o.BuildBytes = cmp.Or(o.BuildBytes, 64<<20)
	o.Readers = cmp.Or(o.Readers, 4)
	return o
}

// MaxChunks is the maximum number of chunks of one file that are indexed.
const MaxChunks = 2000

// Fingerprint identifies everything that the content of a database depends on, except the
// files.
var Fingerprint = fmt.Sprintf("%d/%d", schemaVersion, MaxChunks)

// Database is one open generation of a collection's index. After Retire, it is closed when
// its last user releases it. If a newer generation replaced it or the collection was deleted,
// its file is then removed.
type Database struct {
	file  string
	opts  Options
	write *sql.DB // one connection
	read  *sql.DB
	stmts *statements
	cache *Cache

	scratch freelist.List[Scratch]

	mu      sync.Mutex
	users   int
	retired bool
	remove  bool
	closed  chan struct{}

	state State // the state that readers see; mu guards it and the next fields
	view  *View
	langs map[string]int64 // counts of documents by language; nil until counted
}

// State holds the facts that a database stores about itself.
type State struct {
	Commit space.CommitID
	Docs   int64
	Chunks int64
	Length [parse.FieldCount]int64 // words in each field, summed over all chunks
	Unread int64                   // documents without a blob, because the source could not read them

	next  int64 // the id of the next document
	rows  int64 // the number of the next row of a segment
	epoch int64 // how often the database was written

	segments int64 // how many segments there are
	dead     int64 // the sum of deadMark over the table dead
}

func dsn(file string, pragmas ...string) string {
	s := "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() + "?_pragma=busy_timeout(5000)"
	for _, p := range pragmas {
		s += "&_pragma=" + p
	}
	return s
}

// createFile creates an empty database for a build. The database has no journal, because
// nobody reads an unfinished build.
func createFile(ctx context.Context, file string) (_ *sql.DB, err error) {
	// SQLite would create the file readable for others. SQLite's journals get the file's mode.
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make index: %w", err)
	}
	defer func() {
		if err != nil {
			Remove(file)
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

// Build creates a database in file. fill writes all documents of the commit whose id is at.
func Build(ctx context.Context, file string, o Options, at space.CommitID, fill func(*Writer) error) (err error) {
	db, err := createFile(ctx, file)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, db.Close()); err != nil {
			Remove(file)
		}
	}()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, _, err = write(ctx, tx, State{}, nil, o, at, fill)
	return err
}

// Update brings the database to the commit whose id is at, in one transaction. change writes and
// removes the documents that differ.
func (d *Database) Update(ctx context.Context, at space.CommitID, change func(*Writer) error) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	st, v := d.current()
	if st, v, err = write(ctx, tx, st, v, d.opts, at, change); err != nil {
		return err
	}
	d.mu.Lock()
	d.state, d.view, d.langs = st, v, nil
	d.mu.Unlock()
	return nil
}

func write(ctx context.Context, tx *sql.Tx, st State, v *View, o Options, at space.CommitID, change func(*Writer) error) (State, *View, error) {
	w, err := newWriter(ctx, tx, st, v, o)
	if err != nil {
		return State{}, nil, err
	}
	if err := change(w); err != nil {
		return State{}, nil, err
	}
	return w.commit(ctx, at)
}

// ErrDamaged means that the content of a database is not what this package wrote.
var ErrDamaged = segment.ErrDamaged

// errSchema means that a database was made by another version.
var errSchema = errors.New("index has another schema")

// Open opens a finished database for queries and updates.
func Open(ctx context.Context, file string, o Options, cache *Cache) (_ *Database, err error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	d := &Database{file: file, opts: o, closed: make(chan struct{}), cache: cache}
	defer func() {
		if err != nil {
			d.closeHandles()
		}
	}()
	if d.write, err = sql.Open("sqlite", dsn(file, "journal_mode(wal)", "synchronous(normal)", "cache_size(-4096)")+"&mode=rw&_txlock=immediate"); err != nil {
		return nil, err
	}
	d.write.SetMaxOpenConns(1)
	if d.state, err = loadState(ctx, d.write); err != nil {
		return nil, err
	}
	if d.view, err = loadView(ctx, d.write, d.state); err != nil {
		return nil, err
	}
	if d.read, err = sql.Open("sqlite", dsn(file, "query_only(1)", fmt.Sprintf("cache_size(-%d)", max(1, o.CacheBytes/8/1024)))+"&mode=rw"); err != nil {
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

func loadState(ctx context.Context, q queryer) (s State, err error) {
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
		n, _ := strconv.ParseInt(v, 10, 64) // the checksum detects damage
		switch k {
		case "schema":
			version = v
		case "commit":
			s.Commit = space.CommitID(v)
		case "docs":
			s.Docs = n
		case "chunks":
			s.Chunks = n
		case "title":
			s.Length[parse.FieldTitle] = n
		case "crumb":
			s.Length[parse.FieldCrumb] = n
		case "body":
			s.Length[parse.FieldBody] = n
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
			s.Unread = n
		case "sum":
			sum = n
		}
	}
	if err := rows.Err(); err != nil {
		return s, err
	}
	if version != Fingerprint {
		return s, fmt.Errorf("%w: %q", errSchema, version)
	}
	return s, s.fields().check(sum, nil, "state of commit", s.epoch)
}

func storeState(ctx context.Context, tx *sql.Tx, s State) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO meta(key, value) VALUES ('schema',?),('commit',?),('docs',?),('chunks',?),('title',?),('crumb',?),('body',?),('next',?),('rows',?),('epoch',?),('segments',?),('dead',?),('unread',?),('sum',?)`,
		Fingerprint, string(s.Commit), s.Docs, s.Chunks, s.Length[parse.FieldTitle], s.Length[parse.FieldCrumb], s.Length[parse.FieldBody], s.next, s.rows, s.epoch,
		s.segments, s.dead, s.Unread, s.fields().sum(nil))
	return err
}

// Acquire adds a user. It returns false, and adds none, if the database is retired.
func (d *Database) Acquire() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retired {
		return false
	}
	d.users++
	return true
}

// Release removes a user. The last user of a retired database closes it.
func (d *Database) Release() {
	d.mu.Lock()
	d.users--
	last := d.users == 0 && d.retired
	d.mu.Unlock()
	if last {
		d.finish()
	}
}

// Retire closes the database as soon as nobody uses it. If remove is set, it then removes the
// file.
func (d *Database) Retire(remove bool) {
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

func (d *Database) finish() {
	d.closeHandles()
	d.cache.forget(d)
	if d.remove {
		Remove(d.file)
	}
	close(d.closed)
}

func (d *Database) closeHandles() {
	d.stmts.close()
	if d.read != nil {
		d.read.Close()
	}
	if d.write != nil {
		d.write.Close()
	}
}

// Remove removes a database with its journals.
func Remove(file string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		os.Remove(file + suffix)
	}
}

// State returns the state that readers see.
func (d *Database) State() State {
	st, _ := d.current()
	return st
}

// current returns the state and the view that readers see, and from which the next update
// starts.
func (d *Database) current() (State, *View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.view
}

// Closed returns a channel that is closed when the database is closed.
func (d *Database) Closed() <-chan struct{} { return d.closed }

// File returns the name of the database's file.
func (d *Database) File() string { return d.file }

// Damaged reports whether err means that a database cannot be read, or that its content is not
// what this package wrote.
func Damaged(err error) bool {
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
	// A value of another type than this package wrote. database/sql has no type for this error.
	if strings.Contains(err.Error(), "sql: Scan error") {
		return true
	}
	// sql.ErrNoRows means damage, because another table names the missing row.
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
