package syncs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // for workflows in a SQLite file

	"satchel/internal/fault"
)

const (
	// maxRecoveries is how many starts of the server may continue the same run.
	maxRecoveries = 100
	shutdownGrace = 5 * time.Second
	// The engine's names of this program and of its workflow.
	executor, workflowName = "satchel", "sync"
)

// open starts the workflow engine once, and continues the runs that an earlier process left.
func (m *Manager) open() (dbos.Context, error) {
	m.opening.Lock()
	defer m.opening.Unlock()
	m.mu.Lock()
	open, broken := m.engine, m.broken
	m.broken = nil
	m.mu.Unlock()
	if open != nil {
		return open, nil
	}
	if m.ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "The server is shutting down.")
	}
	var c dbos.Context
	err := errors.New("it failed before")
	if broken != nil {
		m.shutdown(broken)
	} else {
		c, err = m.launch()
	}
	if err != nil {
		// A SQLite file may be removed, because its runs then begin again.
		if err := m.removeFile(err); err != nil {
			return nil, err
		}
		if c, err = m.launch(); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	m.engine = c
	left := m.left
	m.left = nil
	m.mu.Unlock()
	m.forgetOthers(c, left)
	for _, r := range left {
		m.resume(c, r)
	}
	return c, nil
}

// removeFile removes the workflow database if it is a SQLite file, and otherwise does nothing.
func (m *Manager) removeFile(why error) error {
	file, ok := strings.CutPrefix(m.o.Workflows, "sqlite:")
	if !ok {
		return nil
	}
	m.o.Logger.Warn("the database of running syncs cannot be used; it is made again", "error", why)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the database of workflows: %w", err)
		}
	}
	return nil
}

// discard stops the use of an engine that failed. The next run opens another engine.
func (m *Manager) discard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine != nil {
		m.engine, m.broken = nil, m.engine
	}
}

func (m *Manager) shutdown(c dbos.Context) {
	if err := dbos.Shutdown(c, shutdownGrace); err != nil {
		m.o.Logger.Warn("the workflow engine did not end well", "error", err)
	}
}

func (m *Manager) launch() (dbos.Context, error) {
	if file, ok := strings.CutPrefix(m.o.Workflows, "sqlite:"); ok {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the database of workflows: %w", err)
		}
		f.Close()
	}
	// The engine distinguishes its own shutdown from the end of its context, so it gets a
	// context that never ends.
	c, err := dbos.NewContext(context.Background(), dbos.Config{
		AppName: "satchel", DatabaseURL: m.o.Workflows, ApplicationVersion: workflowVersion, ExecutorID: executor,
		Logger: slog.New(quiet{m.o.Logger.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("open the workflow engine: %w", err)
	}
	dbos.RegisterWorkflow(c, m.workflow, dbos.WithWorkflowName(workflowName), dbos.WithMaxRecoveryAttempts(maxRecoveries))
	if err := dbos.Launch(c); err != nil {
		return nil, errors.Join(fmt.Errorf("start the workflow engine: %w", err), dbos.Shutdown(c, shutdownGrace))
	}
	return c, nil
}

// resume continues a run of an earlier process. The engine already continues the runs that it
// knows. All other runs begin again, such as those of an older version of the steps.
func (m *Manager) resume(c dbos.Context, r *run) {
	h, err := dbos.RetrieveWorkflow[string](c, r.Run)
	if err == nil {
		var st dbos.WorkflowStatus
		if st, err = h.GetStatus(); err == nil {
			switch live := st.Status == dbos.WorkflowStatusPending || st.Status == dbos.WorkflowStatusEnqueued; {
			case live && st.ApplicationVersion == workflowVersion:
				return
			case st.Status == dbos.WorkflowStatusMaxRecoveryAttemptsExceeded:
				err = errors.New("the server stopped during every attempt")
			default:
				err = dbos.DeleteWorkflows(c, []string{r.Run})
			}
		}
	} else if errors.Is(err, dbos.ErrNonExistentWorkflow) {
		err = nil
	}
	if err == nil {
		_, err = dbos.RunWorkflow(c, m.workflow, r.job, dbos.WithWorkflowID(r.Run))
	}
	if err != nil {
		m.o.Logger.Warn("a sync of an earlier process cannot continue; the next one starts from the beginning", "source", r.Source, "error", err)
		m.end(context.Background(), r, outcome{err: fault.Wrap(err, fault.Unavailable, "%s", fault.PublicOf(errInterrupted))})
	}
}

// forgetOthers removes the engine's rows of all runs except left. Such rows remain if a process
// stops before forget has removed the rows of a run.
func (m *Manager) forgetOthers(c dbos.Context, left []*run) {
	keep := map[string]bool{}
	for _, r := range left {
		keep[r.Run] = true
	}
	all, err := dbos.ListWorkflows(c, dbos.WithFilterName(workflowName), dbos.WithFilterExecutorIDs(executor))
	var old []string
	for _, w := range all {
		if !keep[w.ID] {
			old = append(old, w.ID)
		}
	}
	if err == nil && len(old) > 0 {
		err = dbos.DeleteWorkflows(c, old)
	}
	if err != nil {
		m.o.Logger.Warn("the workflows of old syncs were not removed", "error", err)
	}
}

// forget removes the engine's rows of a run that has ended.
func (m *Manager) forget(id string) {
	m.mu.Lock()
	c := m.engine
	m.mu.Unlock()
	if c == nil || m.ctx.Err() != nil {
		return
	}
	m.work.Go(func() {
		h, err := dbos.RetrieveWorkflow[string](c, id)
		if err == nil {
			_, _ = h.GetResult(dbos.WithHandleTimeout(shutdownGrace)) // an error of the workflow is in the log already
			err = dbos.DeleteWorkflows(c, []string{id})
		}
		if err != nil && m.ctx.Err() == nil {
			m.o.Logger.Debug("the workflow of a sync was not removed", "error", err)
		}
	})
}
