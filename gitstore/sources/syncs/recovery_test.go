package syncs_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/gitstore"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// place is a data directory in which one server after the other starts.
type place struct {
	t      *testing.T
	dir    string
	git    string
	now    atomic.Int64 // the clock's difference to the real one
	server *remotetest.Server
	store  func(syncs.Store) syncs.Store // if not nil
	screen func(*gitstore.Options)
	logger *slog.Logger // if not nil
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), git: testenv.NeedProgram(t, "git"), server: remotetest.New(t, remotetest.Options{}), screen: func(*gitstore.Options) {}}
	p.server.Create("docs")
	return p
}

func (p *place) workflows() string { return filepath.Join(p.dir, "workflows.db") }

// within runs do on a server that starts before and stops after it.
func (p *place) within(do func(b *bench)) {
	p.t.Helper()
	w, err := openWorld(p.t.Context(), p.dir, "sqlite:"+filepath.Join(p.dir, "x.db"), "sqlite:"+p.workflows(), p.git, func(o *syncs.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(p.now.Load())) }
		o.Logger = p.logger
		if p.store != nil {
			o.Store = p.store(o.Store)
		}
	}, p.screen)
	must(p.t, err)
	do(&bench{world: w, t: p.t, ctx: p.t.Context(), server: p.server})
	must(p.t, w.close())
}

// alter changes a SQLite file beside the server.
func alter(t *testing.T, file, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), query)
	must(t, err)
}

func count(t *testing.T, file, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	must(t, err)
	defer db.Close()
	must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// stall blocks the fetch of a sync, and returns a channel that receives when it blocks.
func stall(server *remotetest.Server) <-chan struct{} {
	asked := make(chan struct{}, 9)
	server.Inject(func(r remotetest.Request) remotetest.Fault {
		if r.Stage != remotetest.StageFetch {
			return remotetest.Fault{}
		}
		return remotetest.Fault{Response: remotetest.Trouble{Do: func() { asked <- struct{}{} }, Stall: true}}
	})
	return asked
}

func (b *bench) waitFor(want map[string]string) {
	b.t.Helper()
	testenv.WaitFor(b.t, "the sync to end by itself", func() bool {
		st, err := b.Status(b.ctx, "handbook")
		must(b.t, err)
		got, err := b.shown(b.ctx)
		must(b.t, err)
		return st.Running == nil && maps.Equal(got, want)
	})
}

// A sync that the end of a server interrupts ends after the next start, whatever happens to the
// database of running syncs meanwhile, and however old the interrupted program was.
func TestInterruptedSyncsEndAfterTheNextStart(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, file string){
		"whole": func(*testing.T, string) {},
		"lost": func(t *testing.T, file string) {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(file + suffix); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
		},
		"damaged": func(t *testing.T, file string) {
			must(t, os.WriteFile(file, []byte("this is no database, and never was one"), 0o600))
		},
		"cut off": func(t *testing.T, file string) {
			alter(t, file, "PRAGMA wal_checkpoint(TRUNCATE)")
			must(t, os.Truncate(file, 8<<10))
		},
		"of an older version": func(t *testing.T, file string) {
			alter(t, file, "UPDATE workflow_status SET application_version = '0'")
		},
		"of a crashing version": func(t *testing.T, file string) {
			alter(t, file, "UPDATE workflow_status SET application_version = '0', status = 'ERROR'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.server.Push("docs", "main", pages(3, "one"))
			p.within(func(b *bench) {
				b.add()
				b.sync()
				p.server.Push("docs", "main", pages(4, "two"))
				asked := stall(p.server)
				must(t, b.Begin(b.ctx, "handbook", false, false))
				testenv.Receive(t, "a fetch", asked)
			})
			p.server.Inject(nil)
			harm(t, p.workflows())
			p.within(func(b *bench) {
				b.wantShown(pages(3, "one"))
				b.Start()
				b.waitFor(pages(4, "two"))
				st, err := b.Status(b.ctx, "handbook")
				must(t, err)
				if len(st.Runs) != 2 || st.State != space.SyncReady || st.Runs[0].State != space.SyncReady {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// The database of running syncs cannot be opened at the start. The server tries again, and continues the
// interrupted sync.
func TestInterruptedSyncsWaitForTheirDatabase(t *testing.T) {
	p := newPlace(t)
	p.server.Push("docs", "main", pages(3, "one"))
	p.within(func(b *bench) {
		b.add()
		b.sync()
		p.server.Push("docs", "main", pages(4, "two"))
		asked := stall(p.server)
		must(t, b.Begin(b.ctx, "handbook", false, false))
		testenv.Receive(t, "a fetch", asked)
	})
	p.server.Inject(nil)
	file := p.workflows()
	must(t, os.Rename(file, file+".kept"))
	must(t, os.MkdirAll(filepath.Join(file, "no database"), 0o700)) // which cannot be removed as a file
	failed := make(chan struct{}, 1000)
	p.logger = slog.New(slog.NewTextHandler(writerFunc(func([]byte) { failed <- struct{}{} }), &slog.HandlerOptions{Level: slog.LevelError}))
	p.within(func(b *bench) {
		b.Start()
		testenv.Receive(t, "a failed try", failed)
		testenv.Receive(t, "another failed try", failed)
		must(t, os.RemoveAll(file))
		must(t, os.Rename(file+".kept", file))
		b.waitFor(pages(4, "two"))
	})
}

// The database of running syncs is damaged while the server runs: the syncs fail, and the next ones
// use a new database.
func TestAWorkflowDatabaseThatBreaksLater(t *testing.T) {
	for name, harm := range map[string]string{
		"steps cannot be stored": "CREATE TRIGGER no BEFORE INSERT ON operation_outputs BEGIN SELECT RAISE(ABORT, 'no'); END",
		"runs cannot be stored":  "CREATE TRIGGER no BEFORE INSERT ON workflow_status BEGIN SELECT RAISE(ABORT, 'no'); END",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.server.Push("docs", "main", pages(3, "one"))
			p.within(func(b *bench) {
				b.add()
				b.sync()
				p.server.Push("docs", "main", pages(3, "two"))
				alter(t, p.workflows(), harm)
				r, err := b.Sync(b.ctx, "handbook", false, false, func(space.SyncProgress) {})
				if err == nil && r.State != space.SyncFailed {
					t.Errorf("%+v", r)
				}
				st, err := b.Status(b.ctx, "handbook")
				must(t, err)
				if st.State != space.SyncFailed || st.Running != nil || st.Problem == "" || st.Next.IsZero() {
					t.Errorf("%+v", st)
				}
				b.wantShown(pages(3, "one"))
				if r := b.sync(); r.State != space.SyncReady {
					t.Errorf("afterwards: %+v", r)
				}
				b.wantShown(pages(3, "two"))
			})
		})
	}
}

// A panic in a step, and a full disk, end the run; the next one works.
func TestBrokenSteps(t *testing.T) {
	for name, fail := range map[string]func() error{
		"panic":     func() error { panic("a bug") },
		"full disk": func() error { return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			var broken atomic.Bool
			p.store = func(s syncs.Store) syncs.Store { return failing{s, &broken, fail} }
			p.server.Push("docs", "main", pages(3, "one"))
			p.within(func(b *bench) {
				b.add()
				b.sync()
				p.server.Push("docs", "main", pages(3, "two"))
				broken.Store(true)
				if r := b.sync(); r.State != space.SyncFailed || r.Problem == "" {
					t.Errorf("%+v", r)
				}
				b.wantShown(pages(3, "one"))
				broken.Store(false)
				if r := b.sync(); r.State != space.SyncReady {
					t.Errorf("afterwards: %+v", r)
				}
				b.wantShown(pages(3, "two"))
			})
		})
	}
}

// failing is a store whose commits fail while broken is set.
type failing struct {
	syncs.Store
	broken *atomic.Bool
	fail   func() error
}

func (f failing) Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	if f.broken.Load() {
		return space.Commit{}, f.fail()
	}
	return f.Store.Commit(ctx, id, cs, m)
}

// The history of runs has a limit, and a run whose end could not be stored does not run forever.
func TestTheHistoryOfRuns(t *testing.T) {
	p := newPlace(t)
	p.server.Push("docs", "main", pages(1, "one"))
	main := filepath.Join(p.dir, "x.db")
	p.within(func(b *bench) {
		b.add()
		must(t, b.db.Transact(b.ctx, func(tx *gorm.DB) error {
			for i := range 1000 {
				err := tx.Exec(`INSERT INTO syncs_runs (id, source_id, reset_all, confirmed, started, ended, state, problem, version, commit_id, counts)
					VALUES (?, 'handbook', false, false, ?, ?, 'ready', '', '', '', '{}')`, fmt.Sprint("r", i), i, i+1).Error
				if err != nil {
					return err
				}
			}
			return nil
		}))
		alter(t, main, "CREATE TRIGGER no BEFORE UPDATE ON syncs_runs BEGIN SELECT RAISE(ABORT, 'no'); END")
		b.sync()
		alter(t, main, "DROP TRIGGER no")
		p.server.Push("docs", "main", pages(2, "two"))
		b.sync()
		b.wantShown(pages(2, "two"))
		st, err := b.Status(b.ctx, "handbook")
		must(t, err)
		if n := count(t, main, "SELECT count(*) FROM syncs_runs"); n != 50 || len(st.Runs) != n {
			t.Errorf("%d runs, %d are listed", n, len(st.Runs))
		}
		if st.Runs[0].State != space.SyncReady || st.Runs[1].State != space.SyncFailed {
			t.Errorf("%+v", st.Runs[:2])
		}
		testenv.WaitFor(t, "the engine to forget its workflows", func() bool { return count(t, p.workflows(), "SELECT count(*) FROM workflow_status") == 0 })
	})
}

// A clock that was set back delays no sync by more than its interval.
func TestAClockThatWasSetBack(t *testing.T) {
	p := newPlace(t)
	p.server.Push("docs", "main", pages(1, "one"))
	p.now.Store(int64(365 * 24 * time.Hour))
	p.within(func(b *bench) {
		b.add()
		b.sync()
	})
	p.now.Store(0)
	p.server.Push("docs", "main", pages(2, "two"))
	p.within(func(b *bench) {
		b.Start()
		b.waitFor(pages(2, "two"))
	})
}

// A file that the space refuses, such as one with a key, is counted, and the other files sync.
func TestRefusedFiles(t *testing.T) {
	p := newPlace(t)
	p.screen = func(o *gitstore.Options) {
		o.Screen = func(_ context.Context, _ space.SpaceID, path space.Path, _ []byte, _ func() ([]byte, error)) error {
			if path == "key.md" {
				return fault.New(fault.Forbidden, "It is a key.")
			}
			return nil
		}
	}
	p.server.Push("docs", "main", map[string]string{"key.md": "key", "a.md": "one"})
	p.within(func(b *bench) {
		b.add()
		for i, text := range []string{"one", "two", "three"} {
			p.server.Push("docs", "main", map[string]string{"a.md": text})
			flag := ""
			if i == 2 {
				flag = "reset"
			}
			if r := b.sync(flag); r.State != space.SyncReady || r.Skipped["refused"] != 1 {
				t.Errorf("%s: %+v", text, r)
			}
			b.wantShown(map[string]string{"a.md": text})
		}
	})
}

// Two servers with one database take the runs of each other. No source stops to sync by that.
func TestTwoServersOnOneDatabase(t *testing.T) {
	url := databasetest.Postgres(t)
	a := newBenchIn(t, t.TempDir(), url, url)
	a.server.Push("docs", "main", pages(3, "one"))
	a.add()
	a.sync()
	a.server.Push("docs", "main", pages(3, "two"))
	asked := stall(a.server)
	must(t, a.Begin(a.ctx, "handbook", false, false))
	testenv.Receive(t, "a fetch", asked)
	a.server.Inject(nil)
	other, err := openWorld(t.Context(), t.TempDir(), url, url, testenv.NeedProgram(t, "git"), nil)
	must(t, err)
	other.Start()
	testenv.WaitFor(t, "the other server to end the run", func() bool {
		st, err := other.Status(t.Context(), "handbook")
		must(t, err)
		return st.Running == nil
	})
	must(t, other.close())
	// The engine gave the run to the other server, or again to this one.
	if err := a.Cancel(a.ctx, "handbook"); err != nil && fault.CodeOf(err) != fault.Conflict {
		t.Fatal(err)
	}
	if r := a.sync(); r.State != space.SyncReady && r.State != space.SyncUnchanged {
		t.Errorf("%+v", r)
	}
	a.wantShown(pages(3, "two"))
}
