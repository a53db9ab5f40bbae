package pending

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
)

// Options configure a Store. Dir and Seal are required; every other zero field
// takes the default that its comment names.
type Options struct {
	// Dir is the directory that holds everything. It is created if missing. No other
	// process may use it at the same time.
	Dir  string
	Seal *seal.Box

	MaxBytes int64 // bytes of content for one user; default 64 MiB
	MaxFiles int   // files for one user; default 1,000

	Logger *slog.Logger // default slog.Default()
}

// Store keeps pending files under a directory, in Dir/<user>/<space>. Its methods are
// safe for concurrent use.
type Store struct {
	o Options
	// The limits apply to a user, so the calls for one user run one at a time. Two users
	// may share a lock, because each call holds it only while it reads or writes a few files.
	locks [64]sync.Mutex
}

// Open returns the Store of a directory.
func Open(o Options) (*Store, error) {
	if o.Dir == "" || o.Seal == nil {
		return nil, errors.New("pending: Options needs a Dir and a Seal")
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxFiles = cmp.Or(o.MaxFiles, 1000)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of held files: %w", err)
	}
	return &Store{o: o}, nil
}

// safeID reports whether the id of a user or a space can be the name of a directory:
// ^[A-Za-z0-9_-]{1,128}$. It uses no regular expression, because every start of the program would
// have to compile it.
func safeID(id string) bool {
	for _, b := range []byte(id) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return 1 <= len(id) && len(id) <= 128
}

// place is the directory of one user's pending files in one space.
type place struct {
	dir     string
	subject string // the subject for which the files are sealed
}

func (s *Store) place(u space.UserID, id space.SpaceID) (place, error) {
	if !safeID(string(u)) || !safeID(string(id)) {
		return place{}, fault.New(fault.Invalid, "This is not the id of a user and of a space.")
	}
	return place{
		dir:     filepath.Join(s.o.Dir, string(u), string(id)),
		subject: string(u) + "/" + string(id),
	}, nil
}

func (s *Store) lock(u space.UserID) (unlock func()) {
	h := fnv.New32a()
	h.Write([]byte(u))
	l := &s.locks[h.Sum32()%uint32(len(s.locks))]
	l.Lock()
	return l.Unlock
}

// Load returns a user's pending files in a space, sorted by path. The list is empty if there are
// none. If the content of a File was changed on disk, its field Lost is set. The error is a
// fault.Invalid if the index was changed, or if another key sealed it.
func (s *Store) Load(ctx context.Context, u space.UserID, id space.SpaceID) ([]File, error) {
	p, err := s.place(u, id)
	if err != nil {
		return nil, err
	}
	defer s.lock(u)()
	x, err := s.readIndex(p)
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(x.Records))
	for _, r := range x.Records {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := r.file()
		if r.Blob != "" {
			f.Content, err = s.readBlob(p, r)
			if fault.CodeOf(err) == fault.Invalid { // the other files are intact
				s.o.Logger.Error("a held file cannot be read", "user", u, "space", id, "err", err)
				f.Lost, err = "what the server kept of it was damaged", nil
			}
			if err != nil {
				return nil, err
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// List is like Load, without contents.
func (s *Store) List(_ context.Context, u space.UserID, id space.SpaceID) ([]space.PendingFile, error) {
	p, err := s.place(u, id)
	if err != nil {
		return nil, err
	}
	defer s.lock(u)()
	x, err := s.readIndex(p)
	if err != nil {
		return nil, err
	}
	items := make([]space.PendingFile, 0, len(x.Records))
	for _, r := range x.Records {
		items = append(items, space.PendingFile{Path: string(r.Path), Mode: r.Mode, Size: r.Size, Why: r.Why, Lost: r.Lost, Since: r.Since})
	}
	return items, nil
}

// Save stores the files of put, replaces earlier files at their paths, and removes the files at the
// paths of drop. When Save returns, these changes are durable. Save returns the files that exceed
// the user's limits. After an error, the index is still the old one, or completely the new one. If
// the stored files cannot be opened any more, Save renames their directory and starts a new one.
func (s *Store) Save(_ context.Context, u space.UserID, id space.SpaceID, put []File, drop []string) ([]NotStored, error) {
	p, err := s.place(u, id)
	if err != nil {
		return nil, err
	}
	defer s.lock(u)()
	old, err := s.readIndex(p)
	if fault.CodeOf(err) == fault.Invalid {
		if len(put) == 0 {
			return nil, nil // the records are unknown, so there is nothing to remove
		}
		old, err = index{}, s.setAside(p)
	}
	if err != nil {
		return nil, err
	}
	if len(put) == 0 && !slices.ContainsFunc(drop, old.has) {
		return nil, nil
	}
	taken, err := s.usage(u, id)
	if err != nil {
		return nil, err
	}
	next := old.without(drop)
	unkept, err := s.add(p, &next, taken, put)
	if err != nil {
		s.sweep(p, old) // removes what was just written
		return nil, err
	}
	return unkept, s.replace(p, next)
}

// usage is the total of a user's pending files.
type usage struct {
	files int
	bytes int64
}

// usage adds up the user's pending files in other spaces. It ignores a space that cannot
// be read, so that damage there does not prevent keeping files here.
func (s *Store) usage(u space.UserID, except space.SpaceID) (usage, error) {
	var sum usage
	entries, err := os.ReadDir(filepath.Join(s.o.Dir, string(u)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sum, fmt.Errorf("read held files: %w", err)
	}
	for _, e := range entries {
		if e.Name() == string(except) || !safeID(e.Name()) {
			continue
		}
		p, err := s.place(u, space.SpaceID(e.Name()))
		if err != nil {
			return sum, err
		}
		x, err := s.readIndex(p)
		if err != nil {
			s.o.Logger.Warn("the held files of a space cannot be read", "space", e.Name(), "err", err)
			continue
		}
		sum.files += len(x.Records)
		for _, r := range x.Records {
			sum.bytes += r.Size
		}
	}
	return sum, nil
}

// add writes the contents of put and adds their records to x, as far as the limits allow.
func (s *Store) add(p place, x *index, taken usage, put []File) ([]NotStored, error) {
	for _, r := range x.Records {
		taken.files++
		taken.bytes += r.Size
	}
	var unkept []NotStored
	for _, f := range put {
		old, known := x.get(f.Path)
		size := int64(len(f.Content))
		switch {
		case !known && taken.files >= s.o.MaxFiles:
			unkept = append(unkept, NotStored{Path: f.Path, Why: fmt.Sprintf("%d files are held for you already, the most that is allowed", taken.files)})
			continue
		case taken.bytes-old.Size+size > s.o.MaxBytes:
			unkept = append(unkept, NotStored{Path: f.Path, Older: known && old.Lost == "", Why: fmt.Sprintf(
				"it has %s, and %s of the %s that may be held for you are taken", bytesize.Text(size), bytesize.Text(taken.bytes-old.Size), bytesize.Text(s.o.MaxBytes))})
			continue
		}
		r := recordOf(f)
		if r.Since.IsZero() {
			r.Since = time.Now().UTC().Truncate(time.Second)
		}
		if known {
			r.Since = old.Since
		}
		if size > maxInline {
			var err error
			if r.Blob, err = s.writeBlob(p, f.Content); err != nil {
				return nil, err
			}
			r.Content = nil
		}
		if !known {
			taken.files++
		}
		taken.bytes += size - old.Size
		x.set(r)
	}
	return unkept, nil
}

// Drop removes the files at and under a path, and returns their count. If a sandbox may
// be running, call the pool's DropPending instead.
func (s *Store) Drop(_ context.Context, u space.UserID, id space.SpaceID, path string) (int, error) {
	p, err := s.place(u, id)
	if err != nil {
		return 0, err
	}
	defer s.lock(u)()
	old, err := s.readIndex(p)
	if err != nil {
		return 0, err
	}
	var drop []string
	for _, r := range old.Records {
		if q := string(r.Path); q == path || strings.HasPrefix(q, path+"/") {
			drop = append(drop, q)
		}
	}
	if len(drop) == 0 {
		return 0, nil
	}
	return len(drop), s.replace(p, old.without(drop))
}

// DropMember removes the pending files of a removed member in one space. Stop the
// sandboxes concerned before calling DropMember, DropUser or DropSpace, because a
// stopping sandbox stores what it cannot commit.
func (s *Store) DropMember(_ context.Context, u space.UserID, id space.SpaceID) error {
	p, err := s.place(u, id)
	if err != nil {
		return err
	}
	defer s.lock(u)()
	gone := []string{p.dir}
	entries, _ := os.ReadDir(filepath.Dir(p.dir)) // without the directory there is nothing to remove
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, string(id)+".") && strings.HasSuffix(n, asideExt) {
			gone = append(gone, filepath.Join(filepath.Dir(p.dir), n))
		}
	}
	return removeAll(gone...)
}

// DropUser removes all pending files of a removed user.
func (s *Store) DropUser(_ context.Context, u space.UserID) error {
	if !safeID(string(u)) {
		return fault.New(fault.Invalid, "This is not the id of a user.")
	}
	defer s.lock(u)()
	return removeAll(filepath.Join(s.o.Dir, string(u)))
}

// DropSpace removes all pending files of a deleted space.
func (s *Store) DropSpace(ctx context.Context, id space.SpaceID) error {
	users, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("read held files: %w", err)
	}
	var errs []error
	for _, u := range users {
		errs = append(errs, s.DropMember(ctx, space.UserID(u.Name()), id))
	}
	return errors.Join(errs...)
}

func removeAll(dirs ...string) error {
	for _, d := range dirs {
		if err := os.RemoveAll(d); err != nil {
			return fmt.Errorf("remove held files: %w", err)
		}
	}
	return nil
}
