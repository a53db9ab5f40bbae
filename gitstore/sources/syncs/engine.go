package syncs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// workflowVersion identifies the steps of a sync. A process continues only workflows of its own
// version and begins the others again, so a change of the steps needs a new version.
const workflowVersion = "2"

// job is the input of a workflow.
type job struct {
	Run     string `json:"run"`
	Source  string `json:"source"`
	Reset   bool   `json:"reset"`
	Confirm bool   `json:"confirm"`
	// Uploaded is set if the files of an upload are already staged, so that upstream is not asked.
	Uploaded bool `json:"uploaded,omitempty"`
}

// run is a sync that runs.
type run struct {
	job
	started time.Time
	ctx     context.Context //nolint:containedctx // ends when the run is canceled
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed after result is set
	result  space.SyncRun
	m       *Manager
	at      space.SyncProgress // guarded by Manager.mu
	earlier bool               // an earlier process, or another server with this database, started the run
	entered bool               // the engine has started the run in this process; guarded by Manager.mu
}

var (
	errCanceled = fault.New(fault.Canceled, "The update was canceled.")
	errRemoved  = fault.New(fault.Canceled, "The source was removed.")
	errEnded    = fault.New(fault.Canceled, "The person who added the source has left this server.")

	errInterrupted = fault.New(fault.Unavailable, "The update was interrupted. The next one starts from the beginning.")
)

func errTooLong(limit time.Duration) error {
	return fault.New(fault.TooLarge, "The update did not end within %d minutes, which is the limit. Limit the files or pages in the settings of the source, or divide it.", limit/time.Minute)
}

func (m *Manager) newRun(j job, started time.Time) *run {
	r := &run{job: j, started: started, done: make(chan struct{}), m: m}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

func (r *run) step(name string, done, total int) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.at = space.SyncProgress{Step: name, Done: done, Total: total}
}

// workflow runs a sync in the workflow engine (DBOS). Its steps return faults as results, since the
// engine keeps only the texts of errors.
func (m *Manager) workflow(ctx dbos.Context, j job) (_ string, err error) {
	r, row, ok := m.enter(j)
	if !ok {
		return "", nil // the run has ended, or the source was removed
	}
	// The engine recovers from panics, and ends workflows whose steps it cannot store. Record the
	// end of the run in these cases too: otherwise no further run of the source could begin.
	out := outcome{err: errInterrupted}
	defer func() {
		if err == nil || m.ctx.Err() == nil {
			m.end(context.WithoutCancel(ctx), r, out)
		}
	}()
	places := m.places
	if row.Kind == upstream.Upload || j.Uploaded {
		places = m.desk // the person who sent the files waits, and slow sites can occupy m.places
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-r.ctx.Done():
		out.err = context.Cause(r.ctx)
		return r.Run, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer time.AfterFunc(m.o.MaxTime, func() { r.cancel(errTooLong(m.o.MaxTime)) }).Stop()
	got, err := m.steps(ctx, r, row)
	if err != nil {
		if ctx.Err() == nil {
			m.o.Logger.Error("a sync was interrupted", "source", r.Source, "error", err)
			m.discard()
		}
		return "", err
	}
	out = got
	return r.Run, nil
}

// outcome is the end of a run.
type outcome struct {
	err error
	// counts, version and commit describe a complete sync.
	counts  space.SyncCounts
	version string
	commit  space.CommitID
	pkg     Package
	same    bool // upstream had no changes
}

// checked and fetched are the results of the steps check and fetch.
type checked struct {
	Version string `json:"version"`
	Same    bool   `json:"same"`
}

type fetched struct {
	Version string           `json:"version"`
	Counts  space.SyncCounts `json:"counts"`
	// Changes are the changes of a dry run. The engine never stores them.
	Changes []space.SyncChange `json:"-"`
}

// steps runs the steps of a sync. err is set only if the engine fails, or the process ends.
func (m *Manager) steps(ctx dbos.Context, r *run, row syncRow) (out outcome, err error) {
	r.step("check", 0, 0)
	now, err := step(ctx, r, "check", func(ctx context.Context) (checked, error) { return m.check(ctx, r, row) })
	if err != nil || now.failed() != nil {
		return outcome{err: now.failed()}, err
	}
	if now.Value.Same {
		return outcome{same: true, version: row.Version, commit: space.CommitID(row.CommitID)}, nil
	}
	r.step("fetch", 0, 0)
	got, err := step(ctx, r, "fetch", func(ctx context.Context) (fetched, error) { return m.fetch(ctx, r, row) })
	if err != nil || got.failed() != nil {
		return outcome{err: got.failed(), counts: got.Value.Counts}, err
	}
	out = outcome{counts: got.Value.Counts, version: got.Value.Version}
	done, err := step(ctx, r, "commit", func(ctx context.Context) (committed, error) {
		c, err := m.commit(ctx, r, row, message(r.Source, addressOf(row), row.Version, out.version, out.counts))
		if errors.Is(err, errStage) {
			err = damagedStage(err)
		}
		return c, err
	})
	if err != nil || done.failed() != nil {
		out.err = done.failed()
		return out, err
	}
	if n := done.Value.Refused; n > 0 {
		if out.counts.Skipped == nil {
			out.counts.Skipped = map[string]int{}
		}
		out.counts.Skipped["refused"] += n
	}
	out.commit = done.Value.Commit
	r.step("publish", 0, 0)
	shown, err := step(ctx, r, "publish", func(ctx context.Context) (Package, error) { return m.publish(ctx, r, row, out.commit) })
	out.err, out.pkg = shown.failed(), shown.Value
	return out, err
}

// result is what the engine stores of a step.
type result[T any] struct {
	Value  T             `json:"value"`
	Code   fault.Code    `json:"code,omitempty"`
	Public string        `json:"public,omitempty"`
	Retry  time.Duration `json:"retry,omitempty"`
	Field  string        `json:"field,omitempty"`
}

func (r result[T]) failed() error {
	if r.Code == "" {
		return nil
	}
	return &fault.Error{Code: r.Code, Public: r.Public, RetryAfter: r.Retry, Field: r.Field}
}

// step runs a step, and repeats it up to Options.Retries times while its error may be
// temporary. The returned error is set only if the engine fails, or the process ends.
func step[T any](ctx dbos.Context, r *run, name string, fn func(context.Context) (T, error)) (result[T], error) {
	m := r.m
	tries := 0
	out, err := dbos.RunAsStep(ctx, func(ctx context.Context) (result[T], error) {
		tries++
		stepCtx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
		v, err := fn(stepCtx)
		err = explainDisk(err)
		if err != nil && ctx.Err() != nil {
			return result[T]{}, err
		}
		if err != nil && r.ctx.Err() != nil {
			err = context.Cause(r.ctx)
		}
		if err != nil && temporary(err) && tries <= m.o.Retries && r.ctx.Err() == nil {
			m.o.Logger.Info("a step of a sync failed; it is tried again", "source", r.Source, "step", name, "error", err)
			return result[T]{}, err
		}
		res := result[T]{Value: v}
		if err != nil {
			m.o.Logger.Warn("a sync failed", "source", r.Source, "step", name, "error", err)
			res.Code, res.Public, res.Field = fault.CodeOf(err), fault.PublicOf(err), fault.FieldOf(err)
			if f, ok := errors.AsType[*fault.Error](err); ok {
				res.Retry = f.RetryAfter
			}
		}
		return res, nil
	}, dbos.WithStepName(name), dbos.WithStepMaxRetries(m.o.Retries+1), dbos.WithStepBaseInterval(m.o.Retry), dbos.WithStepMaxInterval(30*m.o.Retry),
		dbos.WithStepBackoffFactor(4), dbos.WithStepRetryPredicate(temporary))
	return out, err
}

// temporary reports whether the error of a step may go away within seconds.
func temporary(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code == fault.Unavailable && f.RetryAfter == 0
}

// check asks upstream for its version. If upstream cannot be fetched, the error of check says
// why, more precisely than that of a fetch would.
func (m *Manager) check(ctx context.Context, r *run, row syncRow) (checked, error) {
	if r.Uploaded {
		return checked{}, nil
	}
	u, env, done, err := m.upstream(row)
	if err != nil {
		return checked{}, err
	}
	defer done()
	v, err := u.Check(ctx, env)
	all := r.Reset || r.Confirm // the files are fetched in any case
	return checked{string(v), v != "" && string(v) == row.Version && !all}, err
}

// fetch stages the files of upstream, and compares them with the manifest.
func (m *Manager) fetch(ctx context.Context, r *run, row syncRow) (fetched, error) {
	if r.Uploaded {
		known, err := m.manifest(ctx, row.SourceID)
		if err != nil {
			return fetched{}, err
		}
		return stageUploaded(known, m.stageDir(r.Run))
	}
	return m.stageUpstream(ctx, row, m.stageDir(r.Run), r.Reset, r.Confirm, func(done, total int) { r.step("fetch", done, total) })
}

func (m *Manager) stageUpstream(ctx context.Context, row syncRow, dir string, fresh, confirm bool, progress func(done, total int)) (fetched, error) {
	known, err := m.manifest(ctx, row.SourceID)
	if err != nil {
		return fetched{}, err
	}
	if row.Kind == upstream.Upload {
		return stageUploaded(known, dir)
	}
	u, env, done, err := m.upstream(row)
	if err != nil {
		return fetched{}, err
	}
	defer done()
	env.First = fresh || len(known) == 0
	s, err := newStage(dir, known, fresh, m.limits(), progress)
	if err != nil {
		return fetched{}, err
	}
	v, err := u.Fetch(ctx, env, s)
	if err != nil {
		return fetched{}, err
	}
	out := fetched{Version: string(v), Counts: compare(known, s.list())}
	out.Counts.Skipped = s.skipped
	switch {
	case out.Counts.Files == 0 && len(known) == 0:
		return out, fault.New(fault.NotFound, "Upstream has no files that this source takes. Check its settings.")
	case 2*out.Counts.Deleted > len(known) && !confirm:
		return out, fault.New(fault.Conflict, "Upstream has %d of the %d files of this source. Confirm the removal of the others, or correct the settings.",
			len(known)-out.Counts.Deleted, len(known)).In(fieldShrunk)
	}
	if dir == "" {
		out.Changes = changesOf(known, s.list(), maxChanges)
		return out, nil
	}
	return out, s.save()
}

// fieldShrunk marks the error of a sync that would remove most files.
const fieldShrunk = "confirm"

// publish shows a commit to readers, and stores the manifest of the files in it.
func (m *Manager) publish(ctx context.Context, r *run, row syncRow, at space.CommitID) (Package, error) {
	files, err := readStage(m.stageDir(r.Run))
	if err != nil {
		return Package{}, damagedStage(err)
	}
	p, err := m.packageOf(ctx, row, m.stageDir(r.Run), files)
	if err != nil {
		return p, err
	}
	if _, err := m.o.Sources.Switch(ctx, r.Source, at, r.Reset); err != nil {
		return p, err
	}
	return p, m.storeManifest(ctx, r.Source, files)
}

func (m *Manager) limits() limits {
	return limits{files: m.o.MaxFiles, file: m.o.Env.MaxFileBytes, source: m.o.Env.MaxBytes}
}

// upstream opens the upstream of a sync. done removes its scratch directory.
func (m *Manager) upstream(row syncRow) (u upstream.Upstream, env *upstream.Env, done func(), err error) {
	if u, err = upstream.Open(row.Kind, []byte(row.Settings)); err != nil {
		return nil, nil, nil, err
	}
	if env, done, err = m.env(); err != nil {
		return nil, nil, nil, err
	}
	if row.Trusted {
		env.Trusted = trustedBy(addresses(row.Settings))
	}
	env.Token = m.tokenFor(row)
	return u, env, done, nil
}

// env returns an environment that trusts no address. done removes its scratch directory.
func (m *Manager) env() (env *upstream.Env, done func(), err error) {
	e := m.o.Env
	e.Trusted = nil
	if err := os.MkdirAll(m.o.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	if e.Scratch, err = os.MkdirTemp(m.o.Dir, "scratch-"); err != nil {
		return nil, nil, err
	}
	return &e, func() {
		if err := os.RemoveAll(e.Scratch); err != nil {
			m.o.Logger.Warn("the files of a sync were not removed", "error", err)
		}
	}, nil
}

// explainDisk wraps the error of a full disk in a fault with a text for people. It returns any
// other error unchanged.
func explainDisk(err error) error {
	if err == nil || fault.CodeOf(err) != fault.Internal {
		return err
	}
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	for _, words := range []string{"No space left on device", "disk is full", "Disk quota exceeded"} { // of git and of SQLite
		full = full || strings.Contains(err.Error(), words)
	}
	if full {
		return fault.Wrap(err, fault.Unavailable, "The server's disk is full. The update is tried again; make room on the disk.")
	}
	return err
}

// quiet drops records below warnings, because the engine logs each of its own steps.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}
