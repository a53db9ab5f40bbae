//go:build unix

package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/egress"
	"satchel/internal/egress/egresstest"
	"satchel/internal/seal"
	"satchel/internal/space"
)

// writerEnv makes a process of this test binary a writer.
const writerEnv = "SATCHEL_FAULTS_WRITER"

// setup is what a writer is told first.
type setup struct {
	Name    string
	Dir     string
	Space   space.SpaceID
	URL     string
	Secret  string
	CAFile  string
	Trusted bool
	Port    uint16 // of the remote, where it is reached through the egress proxy
	DNS     string // the address that resolves names then
}

// order is a line for a writer.
type order struct {
	Do   string // "commit", "sync", "status", "look" or "quit"
	Op   string // the change's name, which its tokens and its commit carry
	Seed uint64 // of what is changed
	Old  bool   // from an older state than head, as a sandbox that has not been refreshed
}

// event is a line from a writer.
type event struct {
	Is  string // "ready", "intent", "acked", "failed", "synced" or "status"; and what its schedule notes of it: "crashed", "gone", "late"
	Op  string
	Why string
	// Of an intent: what the change brings, by its paths, and what it means to
	// remove.
	Adds    map[string][]string
	Removes []string
	// Of an acknowledgement.
	Commit    space.CommitID
	Changed   bool
	Refused   []string
	Conflicts int
	// Of a sync, or a status.
	Status space.RemoteStatus
}

// writer is one server process: a store of spaces and a manager of remotes.
type writer struct {
	setup
	out     *json.Encoder
	db      *database.DB
	store   *gitstore.Store
	manager *remotes.Manager
	views   []view // of head, newest last
}

// relay passes events to the manager, which is made after the store.
type relay struct {
	mu sync.Mutex
	to space.Events
}

func (r *relay) Publish(e space.Event) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	if to != nil {
		to.Publish(e)
	}
}

// runWriter obeys orders until there are no more. Errors of the machinery end
// it; those of a commit are told.
func runWriter(in io.Reader, out io.Writer) (err error) {
	ctx := context.Background()
	lines := bufio.NewScanner(in)
	w := &writer{out: json.NewEncoder(out)}
	if !lines.Scan() {
		return lines.Err()
	}
	if err := json.Unmarshal(lines.Bytes(), &w.setup); err != nil {
		return err
	}
	end, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := w.tell(event{Is: "ready"}); err != nil {
		return err
	}
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		switch o.Do {
		case "commit":
			err = w.commit(ctx, o)
		case "sync":
			var st space.RemoteStatus
			if st, err = w.manager.Sync(ctx, w.Space, nil); err == nil {
				err = w.tell(event{Is: "synced", Op: o.Op, Status: st})
			}
		case "status":
			err = w.status(ctx, o)
		case "look":
			w.manager.Notify(w.Space)
		case "quit":
			return nil
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *writer) tell(e event) error { return w.out.Encode(e) }

// open starts what the server has of a space and its remote, with delays of
// milliseconds in place of minutes.
func (w *writer) open(ctx context.Context) (end func() error, err error) {
	var closers []func() error
	all := func() error {
		var errs []error
		for i := len(closers) - 1; i >= 0; i-- {
			errs = append(errs, closers[i]())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, all())
		}
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return nil, err
	}
	if w.db, err = database.Open(ctx, database.Options{URL: "sqlite:" + filepath.Join(w.Dir, "satchel.db"), Logger: log}); err != nil {
		return nil, err
	}
	closers = append(closers, w.db.Close)
	if _, err := w.db.Migrate(ctx, remotes.Migrations()...); err != nil {
		return nil, err
	}
	box, err := seal.Load(filepath.Join(w.Dir, "key"))
	if err != nil {
		return nil, err
	}
	o := transport.Options{
		ListTimeout: 3 * time.Second, TransferTimeout: 20 * time.Second, StallTimeout: 3 * time.Second, SizeEvery: 50 * time.Millisecond, Logger: log,
	}
	if !w.Trusted {
		if o.Egress, err = egress.NewProxy(ctx, egress.Options{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{w.Port}, Logger: log,
			Resolver: egresstest.At(w.DNS),
		}); err != nil {
			return nil, err
		}
		closers = append(closers, func() error { o.Egress.Close(); return nil })
	}
	client := transport.New(o)
	closers = append(closers, client.Close)
	events := &relay{}
	if w.store, err = gitstore.Open(gitstore.Options{Dir: filepath.Join(w.Dir, "spaces"), Transport: client, Events: events, Logger: log}); err != nil {
		return nil, err
	}
	closers = append(closers, w.store.Close)
	w.manager = remotes.New(remotes.Options{
		DB: w.db, Git: w.store, Transport: client, Seal: box, CAFile: w.CAFile, Logger: log,
		Backoff:    remotes.Backoff{Min: 5 * time.Millisecond, Max: 40 * time.Millisecond, Slow: 40 * time.Millisecond, Longest: 40 * time.Millisecond},
		CheckEvery: time.Hour, PollEvery: -1,
	})
	events.mu.Lock()
	events.to = w.manager
	events.mu.Unlock()
	closers = append(closers, func() error { return w.manager.Close(context.Background()) })
	if err := w.create(ctx); err != nil {
		return nil, err
	}
	return all, w.manager.Start(ctx)
}

// create makes the space and gives it its remote, where an earlier process did
// not get so far.
func (w *writer) create(ctx context.Context) error {
	if !w.store.Exists(w.Space) {
		first := space.ChangeSet{Changes: []space.Change{{Path: "about-" + w.Name + ".md", Content: line(w.Name + "-first")}}}
		if _, err := w.store.Create(ctx, w.Space, first, w.meta("first")); err != nil {
			return err
		}
	}
	if err := w.manager.Load(ctx); err != nil {
		return err
	}
	if w.manager.Has(w.Space) {
		return nil
	}
	return w.manager.Set(ctx, remotes.SetRequest{Space: w.Space, URL: w.URL, Username: w.Name, Secret: w.Secret, Trusted: w.Trusted})
}

func (w *writer) meta(op string) space.Meta {
	return space.Meta{Author: space.Person{Name: w.Name, Email: w.Name + "@example.com"}, Message: opMark + op, Tool: "bash"}
}

// commit makes the change that an order's seed gives, and tells of it before and
// after.
func (w *writer) commit(ctx context.Context, o order) error {
	now, err := w.look(ctx)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	from := now
	if o.Old && len(w.views) > 0 {
		from = w.views[rng.IntN(len(w.views))]
	}
	w.views = append(w.views, now)
	if len(w.views) > 3 {
		w.views = w.views[1:]
	}
	e := newEdit(from, rng, o.Op)
	if err := w.tell(event{Is: "intent", Op: o.Op, Adds: e.adds, Removes: e.removes}); err != nil {
		return err
	}
	cs := space.ChangeSet{Policy: space.KeepBoth}
	for _, p := range e.order {
		c := e.changes[p]
		was := from[p]
		change := space.Change{Path: p, Base: was.blob, BaseMode: was.mode}
		if c == nil {
			change.Op = space.Delete
		} else {
			change.Mode, change.Content = c.mode, c.content
		}
		cs.Changes = append(cs.Changes, change)
	}
	c, err := w.store.Commit(ctx, w.Space, cs, w.meta(o.Op))
	if err != nil {
		return w.tell(event{Is: "failed", Op: o.Op, Why: err.Error()})
	}
	ack := event{Is: "acked", Op: o.Op, Commit: c.ID, Changed: c.Changed, Conflicts: len(c.Conflicts)}
	for _, r := range c.Rejected {
		ack.Refused = append(ack.Refused, r.Path)
	}
	return w.tell(ack)
}

// status says how far the manager has pushed without being asked to.
func (w *writer) status(ctx context.Context, o order) error {
	st, err := w.manager.Status(ctx, w.Space)
	if err != nil {
		return err
	}
	return w.tell(event{Is: "status", Op: o.Op, Status: st})
}

// look reads all files at head.
func (w *writer) look(ctx context.Context) (view, error) {
	head, err := w.store.Head(ctx, w.Space)
	if err != nil {
		return nil, err
	}
	files, err := w.store.Files(ctx, w.Space, head, "")
	if err != nil {
		return nil, err
	}
	v := view{}
	for _, f := range files {
		b, err := w.store.ReadBlob(ctx, w.Space, f.Blob)
		if err != nil {
			return nil, err
		}
		v[string(f.Path)] = file{content: bytes.Clone(b), mode: f.Mode, blob: f.Blob}
	}
	return v, nil
}

// writerMain is the process of a writer.
func writerMain() int {
	if err := runWriter(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "writer:", err)
		return 1
	}
	return 0
}
