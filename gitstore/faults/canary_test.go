//go:build unix

package faults

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/egress"
	"satchel/internal/egress/egresstest"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

const canaryUser = "canary-user"

// newCanary is a token that has no other meaning; where it shows, tokens leak. It is
// another in each run, since all processes of the machine are searched, among them
// those of a run beside this one.
func newCanary() string { return "cnry" + rand.Text()[:10] + "-Zt9/p+K" }

// canaryForms are the shapes in which the token could show itself.
func canaryForms(canaryToken string) map[string][]byte {
	both := canaryUser + ":" + canaryToken
	forms := map[string][]byte{
		"plain":         []byte(canaryToken),
		"query-escaped": []byte(url.QueryEscape(canaryToken)),
		"path-escaped":  []byte(url.PathEscape(canaryToken)),
		"quoted":        bytes.Trim(fmt.Appendf(nil, "%q", canaryToken), `"`),
		"hexadecimal":   []byte(hex.EncodeToString([]byte(canaryToken))),
	}
	// In Base64 a text has three forms, by where it begins.
	for name, text := range map[string]string{"the token": canaryToken, "user and token": both} {
		for shift := range 3 {
			enc := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
			forms[fmt.Sprintf("base64 of %s, %d", name, shift)] = []byte(strings.Trim(enc[(shift*4+2)/3+1:len(enc)-2], "="))
		}
	}
	return forms
}

// canary looks for the token.
type canary struct {
	t     *testing.T
	forms map[string][]byte
	mu    sync.Mutex
	seen  map[string]int // places that were searched
	held  int            // environments of transfers that had it
}

func (c *canary) search(where string, text []byte) bool {
	c.mu.Lock()
	c.seen[where]++
	c.mu.Unlock()
	for name, form := range c.forms {
		if bytes.Contains(text, form) {
			at := bytes.Index(text, form)
			c.t.Errorf("%s shows the token (%s): …%q…", where, name, text[max(0, at-60):min(len(text), at+80)])
			return true
		}
	}
	return false
}

// files searches every file below a directory, and its name.
func (c *canary) files(where, dir string) {
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		c.search("the name of a file of "+where, []byte(p))
		if d.Type().IsRegular() {
			if b, err := os.ReadFile(p); err == nil {
				c.search("a file of "+where, b)
			}
		}
		return nil
	})
}

// processes searches the arguments and the environment of every process. The
// environment of a git that works below dir may have the token, and so may the
// remote's own, below theirs.
func (c *canary) processes(dir, theirs string) {
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		// In this order: a process may end, or become another program,
		// meanwhile, and stays where it is.
		at, err1 := os.Readlink(filepath.Join(p, "cwd"))
		args, err2 := os.ReadFile(filepath.Join(p, "cmdline"))
		env, err3 := os.ReadFile(filepath.Join(p, "environ"))
		c.search("the arguments of a process", args)
		program, _, _ := strings.Cut(string(args), "\x00")
		switch {
		case err1 != nil, err2 != nil, err3 != nil: // it is gone, or another user's
		case strings.HasPrefix(at, theirs):
		case strings.HasPrefix(filepath.Base(program), "git") && strings.HasPrefix(at, dir+"/"):
			c.mu.Lock()
			if bytes.Contains(env, c.forms["base64 of user and token, 0"]) {
				c.held++
			}
			c.mu.Unlock()
		default:
			c.search("the environment of "+filepath.Base(program), env)
		}
	}
}

// syncBuffer is a log that many write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// paced is a transport that gives up soon where it is told to: on answers that
// have no end, and not on good ones, which wait for every search of the token.
type paced struct {
	*transport.Client // patient
	hasty             *transport.Client
	hurry             atomic.Bool
}

func (p *paced) client() *transport.Client {
	if p.hurry.Load() {
		return p.hasty
	}
	return p.Client
}

func (p *paced) List(ctx context.Context, e transport.Endpoint) (transport.Refs, error) {
	return p.client().List(ctx, e)
}

func (p *paced) Fetch(ctx context.Context, e transport.Endpoint, gitDir, branch, into string, limit int64, progress func(string)) error {
	return p.client().Fetch(ctx, e, gitDir, branch, into, limit, progress)
}

func (p *paced) Push(ctx context.Context, e transport.Endpoint, gitDir string, commit space.CommitID, branch string, progress func(string)) error {
	return p.client().Push(ctx, e, gitDir, commit, branch, progress)
}

// TestCanary sets a token on a remote, has transfers go well and badly, by a
// remote that repeats what it is sent among others, and then looks everywhere:
// the token is in the requests to that remote and, while a transfer runs, in
// the environment of its git, and nowhere else.
func TestCanary(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		testenv.SkipOrFail(t, "there is no /proc")
	}
	for _, direct := range []bool{true, false} {
		t.Run(map[bool]string{true: "trusted, http", false: "through the egress proxy, https"}[direct], func(t *testing.T) { runCanary(t, direct) })
	}
}

func runCanary(t *testing.T, direct bool) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	canaryToken := newCanary()
	c := &canary{t: t, forms: canaryForms(canaryToken), seen: map[string]int{}}
	var log syncBuffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))

	srv := remotetest.New(t, remotetest.Options{TLS: !direct, Username: canaryUser, Password: canaryToken, Names: []string{"w0.remote.test"}})
	srv.Create(repoName)
	srv.Push(repoName, mainline, map[string]string{"theirs.md": "theirs\n"})
	other := remotetest.New(t, remotetest.Options{TLS: !direct})
	port, err := strconv.ParseUint(srv.Host()[strings.LastIndex(srv.Host(), ":")+1:], 10, 16)
	if err != nil {
		t.Fatal(err)
	}

	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := database.Open(ctx, database.Options{URL: "sqlite:" + filepath.Join(dir, "satchel.db"), Logger: logger, Slow: time.Nanosecond})
	must(err)
	defer db.Close()
	_, err = db.Migrate(ctx, remotes.Migrations()...)
	must(err)
	box, err := seal.Load(filepath.Join(dir, "key"))
	must(err)
	o := transport.Options{Logger: logger}
	target := srv.URL(repoName)
	if !direct {
		proxy, err := egress.NewProxy(ctx, egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{uint16(port)},
			Resolver: egresstest.Resolver(t, egresstest.Answers{"w0.remote.test": {egresstest.Addrs("127.0.0.1")}}), Logger: logger})
		must(err)
		defer proxy.Close()
		o.Egress = proxy
		target = "https://w0.remote.test:" + strconv.FormatUint(port, 10) + "/" + repoName + ".git"
	}
	client := &paced{Client: transport.New(o)}
	defer client.Close()
	o.ListTimeout, o.StallTimeout = 10*time.Second, 2*time.Second
	client.hasty = transport.New(o)
	defer client.hasty.Close()
	events := &relay{}
	store, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(dir, "spaces"), Transport: client, Events: events, Logger: logger})
	must(err)
	defer store.Close()
	m := remotes.New(remotes.Options{DB: db, Git: store, Transport: client, Seal: box, CAFile: srv.CAFile(), Logger: logger,
		Backoff: remotes.Backoff{Min: time.Hour, Max: time.Hour}, PollEvery: -1})
	defer m.Close(ctx)
	events.mu.Lock()
	events.to = m
	events.mu.Unlock()
	id := space.NewSpaceID()
	_, err = store.Create(ctx, id, space.ChangeSet{Changes: []space.Change{{Path: "ours.md", Content: []byte("ours\n")}}}, space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}})
	must(err)
	seed, err := store.Checkout(ctx, id)
	must(err)
	defer seed.Release()
	must(m.Start(ctx))

	files := func(where string) {
		c.files("the data directory "+where, dir)
		c.files("the temporary directory "+where, tmp)
	}
	show := func(where string, err error) {
		if err != nil {
			c.search("an error of "+where, []byte(fmt.Sprintf("%v %+v %#v", err, err, err)))
		}
	}
	say := func(line string) { c.search("a line of progress", []byte(line)) }

	// The wrong token first, then the right one: neither may show.
	show("Set", m.Set(ctx, remotes.SetRequest{Space: id, URL: strings.Replace(target, "://", "://"+url.UserPassword(canaryUser, canaryToken).String()+"@", 1), Trusted: direct}))
	must(m.Set(ctx, remotes.SetRequest{Space: id, URL: target, Username: canaryUser, Secret: canaryToken, Trusted: direct}))

	echo := func(r remotetest.Request) string {
		_, pass, _ := (&http.Request{Header: r.Header}).BasicAuth()
		return fmt.Sprintf("You sent %s, which is %s and %s\n", r.Header.Get("Authorization"), pass, url.QueryEscape(pass))
	}
	type step struct {
		name   string
		inject func(remotetest.Request) remotetest.Fault
		hook   remotetest.Refusal
		lands  bool // the push may be done though its answer never came
	}
	at := func(st remotetest.Stage, f func(remotetest.Request) remotetest.Fault) func(remotetest.Request) remotetest.Fault {
		return func(r remotetest.Request) remotetest.Fault {
			if r.Stage != st {
				return remotetest.Fault{}
			}
			return f(r)
		}
	}
	status := func(code int) func(remotetest.Request) remotetest.Fault {
		return func(r remotetest.Request) remotetest.Fault {
			f := remotetest.Status(code, echo(r))
			f.Answer.Header = http.Header{"X-Echo": {echo(r)[:20] + canaryToken}, "Www-Authenticate": {`Basic realm="` + canaryToken + `"`}}
			return f
		}
	}
	steps := []step{{name: "all goes well"}}
	codes := []int{401, 403, 500}
	if testenv.Soak() {
		codes = append(codes, 400, 404, 409, 413, 429, 503)
	}
	for _, stage := range []remotetest.Stage{remotetest.StageFetchRefs, remotetest.StageFetch, remotetest.StagePushRefs, remotetest.StagePush} {
		for _, code := range codes {
			steps = append(steps, step{name: fmt.Sprintf("%s: %d", stage, code), inject: at(stage, status(code))})
		}
		steps = append(steps,
			step{name: string(stage) + ": redirected to another host", inject: at(stage, func(r remotetest.Request) remotetest.Fault {
				return remotetest.Redirect(302, other.URL("stolen")+"/info/refs?service=git-upload-pack&token="+url.QueryEscape(canaryToken))
			})},
			step{name: string(stage) + ": the answer is cut", inject: at(stage, func(remotetest.Request) remotetest.Fault {
				return remotetest.Fault{Response: remotetest.Trouble{After: 20, Cut: true}}
			}), lands: stage == remotetest.StagePush},
			step{name: string(stage) + ": it is no git", inject: at(stage, status(200))},
			step{name: string(stage) + ": an error packet", inject: at(stage, func(r remotetest.Request) remotetest.Fault {
				text := "ERR " + echo(r)
				f := remotetest.Status(200, fmt.Sprintf("%04x%s0000", len(text)+4, text))
				f.Answer.Header = http.Header{"Content-Type": {"application/x-" + strings.TrimPrefix(r.Query.Get("service")+"-advertisement", "-")}}
				return f
			})},
		)
	}
	steps = append(steps,
		step{name: "a hook repeats it", hook: remotetest.Refusal{Text: "your token is " + canaryToken + "\n" + base64.StdEncoding.EncodeToString([]byte(canaryUser+":"+canaryToken)) + "\n", Reason: "because of " + canaryToken}},
		step{name: "a secret was found", hook: remotetest.PushProtection(mainline, strings.Repeat("a", 40), canaryToken, 3)},
		step{name: "all goes well again"},
	)
	for i, st := range steps {
		resume, err := m.Pause(ctx, id)
		must(err)
		srv.Idle() // a git that was ended may have left a push behind
		srv.Refuse(repoName, mainline, st.hook)
		client.hurry.Store(st.inject != nil)
		srv.Inject(func(r remotetest.Request) remotetest.Fault {
			c.processes(dir, filepath.Dir(srv.Dir(repoName)))
			if i == 0 || i%10 == 5 && r.Stage == remotetest.StageFetch { // a search of all takes its time
				files("while a transfer runs")
			}
			if st.inject == nil {
				return remotetest.Fault{}
			}
			return st.inject(r)
		})
		srv.Push(repoName, mainline, map[string]string{"theirs.md": fmt.Sprintf("theirs %d\n", i)})
		_, err = store.Commit(ctx, id, space.ChangeSet{Changes: []space.Change{{Path: fmt.Sprintf("ours-%d.md", i), Content: []byte("x\n")}}},
			space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}})
		must(err)
		resume()
		got, err := m.Sync(ctx, id, say)
		show("Sync", err)
		text, err := json.Marshal(got)
		must(err)
		c.search("the status after "+st.name, append(text, fmt.Sprintf("%+v", got)...))
		c.search("a notice", []byte(strings.Join(m.Notices(id, space.NewUserID()), "\n")))
		c.search("what answers say", []byte(m.Trouble(id)))
		if good := st.inject == nil && st.hook == (remotetest.Refusal{}); good != (got.State == space.RemotePushed) && !st.lands {
			t.Errorf("%s: %+v", st.name, got)
		}
	}
	files("at the end")
	c.files("a sandbox's checkout", seed.Dir)
	c.files("a sandbox's git view", seed.GitView)
	c.files("the remote's repository", filepath.Join(srv.Dir(repoName), "objects"))
	must(m.Remove(ctx, id))
	files("after the remote was removed")
	c.search("the log", log.b.Bytes())

	// The search would have found it: it is where it has to be.
	sent := 0
	for _, r := range srv.Requests() {
		if user, pass, _ := (&http.Request{Header: r.Header}).BasicAuth(); user == canaryUser && pass == canaryToken {
			sent++
			r.Header = nil
		}
		c.search("a request but for its Authorization", fmt.Appendf(nil, "%s %s %v", r.Method, r.Path, r.Query))
	}
	if len(other.Requests()) > 0 {
		t.Errorf("another host was asked: %+v", other.Requests())
	}
	if sent < len(steps) || c.held == 0 {
		t.Errorf("the token was sent %d times, and %d environments had it: the search proves nothing", sent, c.held)
	}
	for _, where := range []string{"the arguments of a process", "a file of the data directory while a transfer runs", "a file of a sandbox's git view", "a line of progress", "an error of Set", "the log"} {
		if c.seen[where] == 0 {
			t.Errorf("%s: nothing was searched", where)
		}
	}
	t.Logf("sent in %d requests, seen in %d environments of transfers; searched %v", sent, c.held, c.seen)
}
