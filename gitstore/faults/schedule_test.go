//go:build unix

package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore/remotetest"
	"satchel/internal/egress/egresstest"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(writerEnv) != "" {
		os.Exit(writerMain())
	}
	goleak.VerifyTestMain(m)
}

// SATCHEL_TEST_SEED=7 replays the schedule with the seed 7 alone; with
// SATCHEL_TEST_SCHEDULES=50 also those of the next 49 seeds. A seed decides which
// changes are made, in which order, and which of a writer's requests fails how.
// The machine decides which process runs when, so a failure may need some replays
// (-count).
const (
	schedulesEnv = "SATCHEL_TEST_SCHEDULES"
	seedEnv      = "SATCHEL_TEST_SEED"
	schedules    = 4
	soak         = 10_000
)

// TestSchedules is the fault suite.
func TestSchedules(t *testing.T) {
	testenv.NeedProgram(t, "git")
	n, first := schedules, uint64(1)
	if testenv.Soak() {
		n = soak
	}
	if s := os.Getenv(schedulesEnv); s != "" {
		n = number(t, schedulesEnv, s)
	}
	if s := os.Getenv(seedEnv); s != "" {
		first = uint64(number(t, seedEnv, s))
		if os.Getenv(schedulesEnv) == "" {
			n = 1
		}
	}
	st := &stats{}
	start, cpu := time.Now(), cpuTime()
	t.Run("seed", func(t *testing.T) {
		for i := range n {
			seed := first + uint64(i)
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				runSchedule(t, seed, st)
			})
		}
	})
	t.Logf("%d schedules from seed %d in %s, %s of processor time each\n%s", n, first, time.Since(start).Round(time.Second),
		((cpuTime() - cpu) / time.Duration(n)).Round(time.Millisecond), st)
}

func number(t *testing.T, name, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number", name, s)
	}
	return n
}

// cpuTime is what this process and those that it waited for have used.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// repoName and branch are what all of a schedule is about, but for schedules in
// which people rename the branch.
const (
	repoName = "notes"
	mainline = "main"
	secret   = "a-secret-of-the-remote"
)

// schedule is one run: its plan comes from the seed alone.
type schedule struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	dir   string
	srv   *remotetest.Server
	repo  *repo
	procs []*process
	stats *stats
	ops   int
	plan  []string // what was done, for whoever reads a failure

	branch string
	taken  map[string]string // people's pushes: commit → op
	forced bool

	mu     sync.Mutex // guards what follows, which requests use
	calm   bool       // nothing goes wrong any more
	rate   int        // percent of requests that a fault meets
	counts map[string]int
	kills  int
}

// maxKills bounds the kills of one schedule: each costs a start.
const maxKills = 3

func runSchedule(t *testing.T, seed uint64, st *stats) {
	s := &schedule{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), stats: st, branch: mainline,
		taken: map[string]string{}, counts: map[string]int{},
	}
	defer func() {
		if t.Failed() {
			s.explain()
		}
	}()
	s.setUp()
	for range 4 + s.rng.IntN(5) {
		s.step()
		if t.Failed() {
			return
		}
	}
	s.heal()
	s.judge()
	st.add("schedules", 1)
}

// explain prints all that helps to understand a failure.
func (s *schedule) explain() {
	s.t.Logf("replay: %s=%d CGO_ENABLED=0 go test -run TestSchedules ./gitstore/faults", seedEnv, s.seed)
	s.t.Logf("schedule:\n%s", strings.Join(s.plan, "\n"))
	for _, p := range s.procs {
		s.t.Logf("writer %s:\n%s", p.Name, p.logged())
	}
	s.t.Logf("server: %s", s.srv.Log())
	for _, r := range s.srv.Requests() {
		user, _, _ := (&http.Request{Header: r.Header}).BasicAuth()
		s.t.Logf("%s %s %s %d in %d out %d %s %v", user, r.Stage, r.Path, r.Status, r.Received, r.Sent, r.Fault, r.Fired)
	}
}

func (s *schedule) note(format string, args ...any) {
	s.plan = append(s.plan, fmt.Sprintf(format, args...))
}

func (s *schedule) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("seed %d: %v", s.seed, err)
	}
}

// setUp makes the remote and starts two writers.
func (s *schedule) setUp() {
	direct := s.rng.IntN(2) == 0
	s.rate = []int{0, 10, 20, 35}[s.rng.IntN(4)]
	o := remotetest.Options{Password: secret}
	names := []string{"w0", "w1"}
	if !direct {
		o.TLS = true
		for _, n := range names {
			o.Names = append(o.Names, n+".remote.test")
		}
	}
	s.srv = remotetest.New(s.t, o)
	s.srv.Create(repoName)
	var err error
	s.repo, err = openRepo(s.srv.Dir(repoName))
	s.must(err)
	s.t.Cleanup(func() { s.repo.close() })
	if s.rng.IntN(3) > 0 {
		s.person()
	}
	s.srv.Inject(s.inject)
	_, portText, _ := net.SplitHostPort(s.srv.Host())
	port, err := strconv.ParseUint(portText, 10, 16)
	s.must(err)
	dns := ""
	if !direct {
		dns = egresstest.Serve(s.t, s.resolve)
	}
	for _, n := range names {
		c := setup{Name: n, Dir: filepath.Join(s.dir, n), Space: space.NewSpaceID(), URL: s.srv.URL(repoName), Secret: secret, Trusted: direct,
			CAFile: s.srv.CAFile(), Port: uint16(port), DNS: dns}
		if !direct {
			c.URL = "https://" + n + ".remote.test:" + portText + "/" + repoName + ".git"
		}
		s.procs = append(s.procs, newProcess(s.t, c))
	}
	// Whatever happens, no process stays.
	s.t.Cleanup(func() {
		for _, p := range s.procs {
			p.kill()
		}
		s.awaitNobody()
	})
	s.note("direct %v, faults meet %d%% of requests", direct, s.rate)
	var starts sync.WaitGroup
	for _, p := range s.procs {
		starts.Go(func() { s.start(p) })
	}
	starts.Wait()
}

// start runs a writer, which a fault may kill on its way.
func (s *schedule) start(p *process) {
	for try := 0; !p.alive(); try++ {
		switch err := p.start(); {
		case err == nil:
			return
		case !errors.Is(err, errGone) || try > maxKills+1:
			s.t.Errorf("seed %d: start of %s: %v", s.seed, p.Name, err)
			return
		}
	}
}

// step does one thing, while transfers go on in the background.
func (s *schedule) step() {
	p := s.procs[s.rng.IntN(len(s.procs))]
	switch k := s.rng.IntN(100); {
	case k < 52:
		s.commit(p)
	case k < 72:
		s.person()
	case k < 76:
		s.force()
	case k < 78:
		s.deleteBranch()
	case k < 79:
		s.renameBranch()
	case k < 84:
		s.start(p)
		at := p.send(order{Do: "sync", Op: "step"})
		s.note("%s syncs", p.Name)
		s.await(p, at, "synced", "step")
	case k < 88:
		p.send(order{Do: "look"})
		s.note("%s looks", p.Name)
	case k < 92:
		s.refusePushes()
	default:
		s.killSoon(p)
	}
	if s.rng.IntN(3) == 0 {
		// Time for transfers to get somewhere before the next thing happens.
		s.pause(time.Duration(s.rng.IntN(30)) * time.Millisecond)
	}
}

// commit has a writer make a change, and mostly waits for its acknowledgement.
func (s *schedule) commit(p *process) {
	s.start(p)
	s.ops++
	o := order{Do: "commit", Op: fmt.Sprintf("%s-%d", p.Name, s.ops), Seed: s.rng.Uint64(), Old: s.rng.IntN(4) == 0}
	at := p.send(o)
	s.note("%s commits %s from %x, old %v", p.Name, o.Op, o.Seed, o.Old)
	if s.rng.IntN(4) > 0 {
		s.await(p, at, "acked", o.Op)
	}
}

func (s *schedule) await(p *process, at int, is, op string) event {
	e, err := p.await(at, is, op)
	if err != nil && !errors.Is(err, errGone) {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
	if e.Is == "failed" {
		s.t.Errorf("seed %d: op %s failed: %s", s.seed, e.Op, e.Why)
	}
	return e
}

// mayKill reports whether one more kill is allowed, and counts it.
func (s *schedule) mayKill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm || s.kills >= maxKills {
		return false
	}
	s.kills++
	return true
}

// killSoon kills a writer after some milliseconds, whatever it does then.
func (s *schedule) killSoon(p *process) {
	wait := time.Duration(s.rng.IntN(25_000)) * time.Microsecond
	if !p.alive() || !s.mayKill() {
		return
	}
	s.pause(wait)
	if p.kill() {
		s.note("%s is killed after %s", p.Name, wait)
		s.stats.add("killed at a random time", 1)
	}
}

// pause lets the writers work for a while; what they do by then is left to chance.
func (s *schedule) pause(d time.Duration) { time.Sleep(d) }

// heal ends all faults and waits until both spaces and the remote are the same.
func (s *schedule) heal() {
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	s.takePushes()
	s.note("healing")
	for _, p := range s.procs {
		s.start(p)
		testenv.WaitFor(s.t, fmt.Sprintf("seed %d: %s pushes by itself what it has", s.seed, p.Name), func() bool {
			at := p.send(order{Do: "status", Op: "heal"})
			return s.await(p, at, "status", "heal").Status.State == space.RemotePushed || s.t.Failed()
		})
	}
	const rounds = 6
	var last []space.RemoteStatus
	for range rounds {
		last = nil
		for _, p := range s.procs {
			s.start(p)
			at := p.send(order{Do: "sync", Op: "heal"})
			last = append(last, s.await(p, at, "synced", "heal").Status)
			if s.t.Failed() {
				return
			}
		}
		tip, err := s.repo.tip("refs/heads/" + s.branch)
		s.must(err)
		same := true
		for _, st := range last {
			same = same && st.State == space.RemotePushed && string(st.Head) == tip && st.Head == st.Pushed
		}
		if same {
			return
		}
	}
	tip, _ := s.repo.tip("refs/heads/" + s.branch)
	s.t.Errorf("seed %d: after %d rounds without a fault the remote is at %s and the writers are %+v", s.seed, rounds, tip, last)
}

// judge holds the rules of check_test.go.
func (s *schedule) judge() {
	if s.t.Failed() {
		return
	}
	for _, p := range s.procs {
		if err := p.quit(); err != nil {
			s.t.Errorf("seed %d: %v", s.seed, err)
		}
	}
	s.awaitNobody()
	tip, err := s.repo.tip("refs/heads/" + s.branch)
	s.must(err)
	h, err := s.repo.history(tip)
	s.must(err)
	var said []event
	for _, p := range s.procs {
		for _, e := range p.said() {
			said = append(said, e)
			if e.Is == "crashed" {
				s.t.Errorf("seed %d: %s crashed: %s", s.seed, p.Name, e.Why)
			}
			if e.Is == "acked" {
				s.stats.add("acknowledged commits", 1)
				s.stats.add("conflicts of commits with an old base", e.Conflicts)
			}
		}
		s.stats.add("kills", p.kills)
	}
	for _, bad := range h.check(tip, said, s.taken) {
		s.t.Errorf("seed %d: %s", s.seed, bad)
	}
	dirs := []string{s.srv.Dir(repoName)}
	for _, p := range s.procs {
		dir := filepath.Join(p.Dir, "spaces", string(p.Space)+".git")
		dirs = append(dirs, dir)
		if head, err := git(dir, "rev-parse", "HEAD"); err != nil || head != tip {
			s.t.Errorf("seed %d: the head of %s is %s %v, and the remote's is %s", s.seed, p.Name, head, err, tip)
		}
	}
	for _, d := range dirs {
		if err := fsck(d); err != nil {
			s.t.Errorf("seed %d: rule 6: %v", s.seed, err)
		}
	}
	for _, c := range h.commits {
		if len(c.parents) > 1 {
			s.stats.add("merges", 1)
			s.stats.add("conflicts of merges", strings.Count(c.message, "\n- "))
		}
	}
	s.stats.add("commits", len(h.commits))
	for _, r := range s.srv.Requests() {
		s.stats.add("requests", 1)
		if r.Fault != "" && r.Fired {
			s.stats.add("fault: "+r.Fault, 1)
		}
	}
}

// awaitNobody waits until no process works for the schedule's writers: one that
// ended well leaves none, and one that is started again ends those that outlived
// the one before it.
func (s *schedule) awaitNobody() {
	var left map[int]string
	defer func() {
		for _, what := range left {
			s.t.Errorf("seed %d: a process stays: %s", s.seed, what)
		}
	}()
	testenv.WaitFor(s.t, "the end of all processes", func() bool {
		left = processesBelow(s.dir)
		for pid := range left {
			if s.t.Failed() { // nobody started the killed again
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return len(left) == 0
	})
}

// processesBelow lists the processes whose working directory is below another.
func processesBelow(dir string) map[int]string {
	found := map[int]string{}
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, c := range cwds {
		if at, err := os.Readlink(c); err == nil && strings.HasPrefix(at, dir+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(c)))
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(c), "cmdline"))
			found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}
