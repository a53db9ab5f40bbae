package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// seeds holds the checkouts and the git view for the sandboxes of a space.
type seeds struct {
	once sync.Once
	turn chan struct{} // a lock for changes of checkouts and view; a caller can stop waiting for it

	mu       sync.Mutex
	manifest *manifest   // the manifest of the newest head that was seen
	snaps    []*snapshot // the newest last
	view     *gitView
	made     int  // the number of snapshots created, for their names
	tending  bool // a background run is in progress
	again    bool // another background run is needed after the current one
}

func (d *seeds) enter(ctx context.Context) error {
	d.once.Do(func() { d.turn = make(chan struct{}, 1) })
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *seeds) leave() { <-d.turn }

// inUse reports whether a sandbox or a background run uses the seeds.
func (d *seeds) inUse() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tending {
		return true
	}
	for _, sn := range d.snaps {
		if sn.users > 0 {
			return true
		}
	}
	return false
}

// seeded reports whether a sandbox uses a checkout.
func (d *seeds) seeded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, sn := range d.snaps {
		if sn.users > 0 {
			return true
		}
	}
	return false
}

func (r *repo) seedDir() string { return filepath.Join(r.s.o.Dir, cacheDir, string(r.id)) }

// forgetSeeds removes the checkouts and the git view. The caller ensures that no
// sandbox uses them.
func (r *repo) forgetSeeds() {
	d := &r.seeds
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snaps, d.manifest, d.view = nil, nil, nil
	if err := removeTree(r.seedDir()); err != nil {
		r.logger().Warn("A checkout could not be removed.", "error", err)
	}
}

// Checkout implements space.Checkouts. It returns a checkout of head that does not
// change, the space's git view, and the library. If no checkout is at head, it updates an
// unused one, and writes only the files that changed. If sandboxes use all checkouts, it
// writes a new one that shares no files with the others.
func (s *Store) Checkout(ctx context.Context, id space.SpaceID) (*space.Checkout, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	seed, err := r.seed(ctx, release)
	if err != nil {
		release()
		return nil, err
	}
	return seed, nil
}

// Warm creates a space's checkout and git view, or updates them to head, so that a
// later Checkout is fast.
func (s *Store) Warm(ctx context.Context, id space.SpaceID) error {
	seed, err := s.Checkout(ctx, id)
	if err == nil {
		seed.Release()
	}
	return err
}

func (r *repo) seed(ctx context.Context, release func()) (*space.Checkout, error) {
	d := &r.seeds
	if err := d.enter(ctx); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := r.ensureSeedDir(); err != nil {
		return nil, err
	}
	if err := r.ensureView(); err != nil {
		return nil, r.internalf(err, "git view")
	}
	m, err := r.currentManifest(ctx)
	if err != nil {
		return nil, r.internalf(err, "seed")
	}
	if err := d.view.writeIndex(m); err != nil {
		return nil, r.internalf(err, "git view")
	}
	// This is the last step that can fail, because afterwards the checkout counts as used
	// until Release is called.
	sn, err := r.snapshotAt(ctx, m)
	if err != nil {
		return nil, r.internalf(err, "checkout")
	}
	return &space.Checkout{
		Head:    packfile.CommitID(m.head),
		Dir:     sn.tree(),
		GitView: d.view.dir,
		Library: r.s.o.LibraryDir,
		Damaged: sn.damaged(),
		Release: sync.OnceFunc(func() {
			d.mu.Lock()
			sn.users--
			d.mu.Unlock()
			r.tend()
			release()
		}),
	}, nil
}

func (r *repo) ensureSeedDir() error {
	err := packfile.MkdirMode(r.seedDir(), 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// snapshotAt returns a checkout of the manifest and adds one user to it. The caller holds
// seeds.turn.
func (r *repo) snapshotAt(ctx context.Context, m *manifest) (*snapshot, error) {
	d := &r.seeds
	d.mu.Lock()
	snaps := slices.Clone(d.snaps)
	d.mu.Unlock()
	complete := map[*snapshot]bool{}
	for _, sn := range snaps { // a snapshot changes only while seeds.turn is held
		complete[sn] = sn.complete(r, m)
	}
	d.mu.Lock()
	var free *snapshot
	for _, sn := range d.snaps {
		if complete[sn] {
			sn.users++
			d.mu.Unlock()
			return sn, nil
		}
		if sn.users == 0 {
			free = sn
		}
	}
	d.mu.Unlock()
	if free != nil {
		err := free.update(ctx, r, m)
		if err == nil {
			d.mu.Lock()
			free.users++
			d.mu.Unlock()
			return free, nil
		}
		r.logger().Warn("A checkout could not be updated; a new one is made.", "error", err)
		r.drop(free)
		if ctx.Err() != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	d.made++
	sn := &snapshot{dir: filepath.Join(r.seedDir(), fmt.Sprintf("checkout-%d", d.made)), users: 1}
	d.mu.Unlock()
	if err := sn.create(ctx, r, m); err != nil {
		return nil, errors.Join(err, removeTree(sn.dir))
	}
	d.mu.Lock()
	d.snaps = append(d.snaps, sn)
	d.mu.Unlock()
	return sn, nil
}

// drop removes a checkout that nobody uses.
func (r *repo) drop(gone *snapshot) {
	d := &r.seeds
	d.mu.Lock()
	kept := d.snaps[:0:0]
	for _, sn := range d.snaps {
		if sn != gone {
			kept = append(kept, sn)
		}
	}
	d.snaps = kept
	d.mu.Unlock()
	if err := removeTree(gone.dir); err != nil {
		r.logger().Warn("A checkout could not be removed.", "error", err)
	}
}

// headMoved updates the git view's packs and ref to the new head at once, and its index and
// an unused checkout in the background. The caller holds commitMu.
func (r *repo) headMoved() {
	d := &r.seeds
	d.mu.Lock()
	v := d.view
	d.mu.Unlock()
	if v == nil {
		return
	}
	if err := v.moveTo(r.db, r.head.Load().id); err != nil {
		r.logger().Error("The git view of sandboxes could not be moved; it is tried again.", "error", err)
	}
	r.tend()
}

// tend brings the view, its index and an unused checkout to head, in the background. It
// also removes old checkouts that nobody uses. Only one run is active at a time.
func (r *repo) tend() {
	d := &r.seeds
	d.mu.Lock()
	if d.tending {
		d.again = true
		d.mu.Unlock()
		return
	}
	d.tending = true
	d.mu.Unlock()
	started := r.s.background(func(ctx context.Context) {
		for {
			if err := r.tendOnce(ctx); err != nil && ctx.Err() == nil {
				r.logger().Error("A checkout could not be brought to head.", "error", err)
			}
			d.mu.Lock()
			if !d.again {
				d.tending = false
				d.mu.Unlock()
				r.free()
				return
			}
			d.again = false
			d.mu.Unlock()
		}
	})
	if !started {
		d.mu.Lock()
		d.tending = false
		d.mu.Unlock()
	}
}

func (r *repo) tendOnce(ctx context.Context) error {
	d := &r.seeds
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.leave()
	d.mu.Lock()
	v := d.view
	d.mu.Unlock()
	if v == nil {
		return nil
	}
	if err := r.syncViewToHead(v); err != nil {
		return fmt.Errorf("git view: %w", err)
	}
	m, err := r.currentManifest(ctx)
	if err != nil {
		return err
	}
	if err := v.writeIndex(m); err != nil {
		return err
	}
	// The next sandbox starts from head. If no checkout is at head, update the newest
	// unused checkout. Drop the other unused ones.
	d.mu.Lock()
	var unused []*snapshot
	atHead := false
	for _, sn := range d.snaps {
		atHead = atHead || sn.at.head == m.head
		if sn.users == 0 && sn.at.head != m.head {
			unused = append(unused, sn)
		}
	}
	d.mu.Unlock()
	for i := len(unused) - 1; i >= 0; i-- {
		if !atHead {
			if err := unused[i].update(ctx, r, m); err != nil {
				r.drop(unused[i])
				return err
			}
			atHead = true
			continue
		}
		r.drop(unused[i])
	}
	return nil
}

// WaitView waits until the git view of the space's sandboxes, including its index, shows
// the head that is current at the time of the call. If the space has no git view, WaitView
// returns at once.
func (s *Store) WaitView(ctx context.Context, id space.SpaceID) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	d := &r.seeds
	d.mu.Lock()
	v := d.view
	d.mu.Unlock()
	if v == nil || v.shows(r.head.Load().id) {
		return nil
	}
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.leave()
	if err := r.syncViewToHead(v); err != nil {
		return r.internalf(err, "git view")
	}
	m, err := r.currentManifest(ctx)
	if err != nil {
		return r.internalf(err, "git view")
	}
	return v.writeIndex(m)
}
