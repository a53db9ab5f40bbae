package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"satchel/sandbox/protocol"
)

const (
	// maxRunningJobs is the maximum number of jobs that run at once. The limit of processes may
	// allow fewer.
	maxRunningJobs = 64
	// keptJobs is how many ended jobs are kept, and keptOutputs how many output files of
	// ended commands. forgetOldest and keepOutputs select those that are removed.
	keptJobs    = 6
	keptOutputs = 4
)

// job is a command that continues after its call was answered.
type job struct {
	id   string
	dir  string
	run  *running
	done bool
}

// output is a file with more of an ended command's stream than the result has.
type output struct {
	path     string
	readOnly bool
}

// jobs keeps the jobs and the files of outputs, all in directories that only the agent can write.
// Commands can read the files of their own kind: the files of read-only callers are separate from
// the others.
type jobs struct {
	output    int64 // bytes kept per stream
	jobsDir   string
	outputDir string
	lastOut   atomic.Int64

	mu      sync.Mutex
	list    []*job // oldest first
	lastJob int
	outputs []output // oldest first

	stop      chan struct{} // closed when the sandbox is being stopped
	hurry     chan struct{} // closed when the grace period of the stop is over
	stopGrace time.Duration
	stopOnce  sync.Once
}

func newJobs(output int64) *jobs {
	return &jobs{output: output, jobsDir: jobsDir, outputDir: outputDir, stop: make(chan struct{}), hurry: make(chan struct{})}
}

func (js *jobs) stopping() (stop, hurry <-chan struct{}) { return js.stop, js.hurry }

func (js *jobs) grace() time.Duration {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.stopGrace
}

// add makes a command a job: further output goes to the job's directory.
func (js *jobs) add(r *running) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	select {
	case <-r.ended:
		return nil, errors.New("the command has ended")
	default:
	}
	active := 0
	for _, j := range js.list {
		if !j.done {
			active++
		}
	}
	if active >= maxRunningJobs {
		return nil, fmt.Errorf("%d jobs run already", active)
	}
	js.lastJob++
	j := &job{id: strconv.Itoa(js.lastJob), run: r}
	j.dir = filepath.Join(js.jobsDir, j.id)
	if err := os.Mkdir(j.dir, 0o700); err != nil {
		return nil, err
	}
	if err := js.fill(j); err != nil {
		os.RemoveAll(j.dir)
		return nil, err
	}
	js.list = append(js.list, j)
	return j, nil
}

// fill creates a job's files, and moves the command's output files there.
func (js *jobs) fill(j *job) error {
	r := j.run
	if err := handTo(j.dir, r.req.ReadOnly, 0o750); err != nil {
		return err
	}
	var moved []string
	for name, c := range map[string]*capture{"stdout": r.stdout, "stderr": r.stderr} {
		path := filepath.Join(j.dir, name)
		sp := c.attach(func() *spool { return newSpoolFor(path, js.output, r.req.ReadOnly) })
		if sp != nil && sp.path != path {
			if err := os.Link(sp.path, path); err != nil {
				return err
			}
			moved = append(moved, sp.path)
		}
	}
	if err := writePid(j.dir, r.pid()); err != nil {
		return err
	}
	if err := replaceFile(j.dir, "command", r.req.Command); err != nil {
		return err
	}
	if err := replaceFile(j.dir, "status", "running"); err != nil {
		return err
	}
	for _, path := range moved {
		os.Remove(path)
	}
	return nil
}

// relaunched records that a command got another shell.
func (js *jobs) relaunched(r *running) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if j.run == r && !j.done {
			_ = writePid(j.dir, r.pid()) // fails on a full file system; the host can still stop the job
		}
	}
}

// finished closes the command's files and r.ended. For a job, it records and reports the
// end, and removes the oldest ended jobs. finished holds the lock of jobs, so that an ended
// command cannot become a job.
func (js *jobs) finished(r *running) {
	js.mu.Lock()
	defer js.mu.Unlock()
	defer close(r.ended)
	for _, c := range []*capture{r.stdout, r.stderr} {
		c.finish()
	}
	var ended *job
	done := 0
	for _, j := range js.list {
		if j.run == r {
			ended, j.done = j, true
		}
		if j.done {
			done++
		}
	}
	if ended == nil {
		js.keepOutputs(r)
		return
	}
	code, signal := exitOf(r.status)
	e := protocol.JobEnd{ID: ended.id, ExitCode: code, Signal: signal, Duration: time.Since(r.started), TimedOut: r.end == protocol.TimedOut}
	status := "exited " + strconv.Itoa(code)
	if signal != "" {
		status = "killed " + signal
	}
	if e.TimedOut {
		status += " (timed out)"
	}
	// Another process may get the same pid.
	_ = os.Remove(filepath.Join(ended.dir, "pid"))
	_ = replaceFile(ended.dir, "status", status) // fails on a full file system; the host is still notified
	for ; done > keptJobs; done-- {
		js.forgetOldest(ended)
	}
	go func() {
		<-r.answered // before the answer, the host does not know the job
		r.s.conn.JobEnded(e)
	}()
}

// forgetOldest removes the oldest ended job of the kind of commands, read-only or not, that has
// more ended jobs. So neither kind can displace the other's jobs. It keeps the job that has just
// ended.
func (js *jobs) forgetOldest(ended *job) {
	count, oldest := map[bool]int{}, map[bool]int{}
	for i, j := range slices.Backward(js.list) {
		if j.done {
			kind := j.run.req.ReadOnly
			count[kind]++
			if j != ended {
				oldest[kind] = i
			}
		}
	}
	kind := count[true] > count[false]
	i, ok := oldest[kind]
	if !ok {
		i = oldest[!kind]
	}
	os.RemoveAll(js.list[i].dir)
	js.list = slices.Delete(js.list, i, i+1)
}

// handTo lets only the commands of one kind read a file or directory.
func handTo(path string, readOnly bool, mode os.FileMode) error {
	gid := protocol.CommandUID
	if readOnly {
		gid = protocol.ReadOnlyUID
	}
	if err := os.Chown(path, 0, gid); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// newSpoolFor is like newSpool, but commands of one kind may read the file.
func newSpoolFor(path string, size int64, readOnly bool) *spool {
	sp := newSpool(path, size)
	if sp != nil && handTo(path, readOnly, 0o640) != nil {
		sp.finish()
		os.Remove(path)
		return nil
	}
	return sp
}

// writePid writes the process group of a job, so that `kill -- -$(cat pid)` stops it.
// Processes that have left the group are ended with the shell.
func writePid(dir string, pid int) error {
	return replaceFile(dir, "pid", strconv.Itoa(pid))
}

// replaceFile replaces a job's file as a whole, with a line end after its text.
func replaceFile(dir, name, line string) error {
	tmp := filepath.Join(dir, name+".new")
	if err := os.WriteFile(tmp, []byte(line+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, name))
}

// outputFile creates the file for one stream's output. It must not take the lock of jobs: the
// caller holds the stream's lock, which add takes while it holds the lock of jobs.
func (js *jobs) outputFile(readOnly bool) *spool {
	path := filepath.Join(js.outputDir, strconv.FormatInt(js.lastOut.Add(1), 10))
	return newSpoolFor(path, js.output, readOnly)
}

// keepOutputs adds the output files of an ended command. It does not add them earlier,
// because the command could become a job, which needs them. As with jobs, it removes the
// oldest file of the kind with more files.
func (js *jobs) keepOutputs(r *running) {
	for _, path := range r.saved {
		if path != "" {
			js.outputs = append(js.outputs, output{path, r.req.ReadOnly})
		}
	}
	for len(js.outputs) > keptOutputs {
		count := map[bool]int{}
		for _, o := range js.outputs {
			count[o.readOnly]++
		}
		kind := count[true] > count[false]
		i := slices.IndexFunc(js.outputs, func(o output) bool { return o.readOnly == kind })
		os.Remove(js.outputs[i].path)
		js.outputs = slices.Delete(js.outputs, i, i+1)
	}
}

// all returns the running jobs and the ended ones that are kept, oldest first.
func (js *jobs) all() []protocol.Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	all := make([]protocol.Job, 0, len(js.list))
	for _, j := range js.list {
		v := protocol.Job{ID: j.id, Command: j.run.req.Command, Running: !j.done, ReadOnly: j.run.req.ReadOnly, Started: j.run.started}
		if j.done {
			v.ExitCode, _ = exitOf(j.run.status)
		}
		all = append(all, v)
	}
	return all
}

func (js *jobs) kill(id, name string) error {
	sig, err := parseSignal(name)
	if err != nil {
		return err
	}
	js.mu.Lock()
	var run *running
	for _, j := range js.list {
		if j.id == id && !j.done {
			run = j.run
		}
	}
	js.mu.Unlock()
	if run == nil {
		return protocol.ErrNoJob
	}
	run.signal(sig)
	return nil
}

// shutdown ends every command and job and returns when none is left. A second call only
// waits.
func (s *server) shutdown(grace time.Duration) {
	s.jobs.stopOnce.Do(func() {
		s.jobs.mu.Lock()
		s.jobs.stopGrace = grace
		s.jobs.mu.Unlock()
		s.shell.stop()
		close(s.jobs.stop)
		time.AfterFunc(grace, func() { close(s.jobs.hurry) })
	})
	for len(s.shell.running()) > 0 {
		time.Sleep(2 * time.Millisecond)
	}
}
