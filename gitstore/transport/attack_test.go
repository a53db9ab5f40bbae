package transport_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/egress"
	"satchel/internal/egress/egresstest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// everyCall makes all three calls to an endpoint. Each must fail with the problem.
func everyCall(t *testing.T, c *transport.Client, e transport.Endpoint, want transport.Problem) {
	t.Helper()
	dir := repo(t)
	id := space.CommitID(commit(t, dir, "", "a.md", "mine\n"))
	_, err := c.List(t.Context(), e)
	fails(t, err, want)
	fails(t, c.Fetch(t.Context(), e, dir, "main", "refs/heads/x", 0, nil), want)
	fails(t, c.Push(t.Context(), e, dir, id, "main", nil), want)
}

// Attack: calls with URLs that CheckURL refuses.
func TestWhatCheckURLRefusesReachesNothing(t *testing.T) {
	trap := filepath.Join(t.TempDir(), "trap")
	r := newRig(t, remotetest.Options{}, transport.Options{})
	c := transport.New(transport.Options{Egress: proxy(t, egress.Options{})})
	for _, u := range []string{
		"file://" + r.Dir("notes"), r.Dir("notes"), r.URL("notes"), "ext::touch " + trap, "ext::sh -c touch% " + trap,
		"-oProxyCommand=touch " + trap, "--upload-pack=touch " + trap, "ssh://-oProxyCommand=touch " + trap + "/x",
		"https://127.0.0.1/notes.git", "https://github.com/octo/notes.git\n", "",
	} {
		everyCall(t, c, transport.Endpoint{URL: u}, transport.BadURL)
		_, err := c.List(t.Context(), transport.Endpoint{URL: u})
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: the code is %s", u, fault.CodeOf(err))
		}
	}
	if n := len(r.Requests()); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a program ran")
	}
}

// Attack: branches that git could read as options or other refs.
func TestABranchIsJudgedBeforeGitSeesIt(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	dir := repo(t)
	id := space.CommitID(commit(t, dir, "", "a.md", "mine\n"))
	for _, b := range []string{"--upload-pack=touch", "+main", "main:refs/heads/other", "a b", "../x", "refs/heads/main", "HEAD", "a\nb", "@{-1}"} {
		if b == "+main" {
			continue // a valid name, which does not force the push; tested below
		}
		fails(t, r.c.Fetch(t.Context(), r.endpoint(), dir, b, "refs/heads/x", 0, nil), transport.BadURL)
		fails(t, r.c.Push(t.Context(), r.endpoint(), dir, id, b, nil), transport.BadURL)
	}
	if n := len(r.Requests()); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	if err := r.c.Push(t.Context(), r.endpoint(), dir, id, "+main", nil); err != nil {
		t.Error(err)
	}
	if r.Head("notes", "+main") != string(id) || r.Head("notes", "main") == string(id) {
		t.Error("the branch +main is not one of its own")
	}
	for _, into := range []string{"", "main", "refs/heads/../x", "--x", "refs/", "refs/heads/a b"} {
		if r.c.Fetch(t.Context(), r.endpoint(), dir, "main", into, 0, nil) == nil {
			t.Errorf("a fetch into %q", into)
		}
	}
}

// Attack: a name resolves to the server's own network, at once or at the second lookup. Both
// the check in Go and git behind the proxy must refuse it.
func TestANameThatLeadsInsideIsRefused(t *testing.T) {
	r := newRig(t, remotetest.Options{TLS: true, Names: []string{"loop.example.org", "rebind.example.org"}}, transport.Options{})
	_, portText, _ := strings.Cut(r.Host(), ":")
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	// In each round, the name "rebind" is public only for the first lookup.
	resolver := egresstest.Resolver(t, egresstest.Answers{
		"loop.example.org":     {egresstest.Addrs("127.0.0.1")},
		"mapped.example.org":   {egresstest.Addrs("::ffff:127.0.0.1", "64:ff9b::7f00:1", "::1")},
		"metadata.example.org": {egresstest.Addrs("169.254.169.254")},
		"rebind.example.org":   {egresstest.Addrs("140.82.112.3"), egresstest.Addrs("127.0.0.1")},
	})
	p := proxy(t, egress.Options{Resolver: resolver, Ports: []uint16{uint16(port)}})
	c := transport.New(transport.Options{Egress: p})
	defer c.Close()
	if a, err := p.Resolve(t.Context(), "rebind.example.org"); err != nil || a.String() != "140.82.112.3" {
		t.Fatalf("the first look-up: %v, %v", a, err)
	}
	for _, host := range []string{"loop", "mapped", "metadata", "rebind"} {
		e := transport.Endpoint{URL: "https://" + host + ".example.org:" + portText + "/notes.git", CAFile: r.CAFile()}
		if err := c.Check(e); err != nil {
			t.Fatalf("%s: %v: the test would prove nothing", e.URL, err)
		}
		everyCall(t, c, e, transport.BlockedAddress)
	}
	everyCall(t, c, transport.Endpoint{URL: "https://unknown.example.org:" + portText + "/notes.git"}, transport.DNS)
	if n := len(r.Requests()); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	// Without egress, no host of a user can be reached.
	everyCall(t, transport.New(transport.Options{}), transport.Endpoint{URL: "https://loop.example.org/notes.git"}, transport.BlockedAddress)
}

// Attack: a remote redirects into the server's network.
func TestRedirectsElsewhereAreNotFollowed(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { t.Errorf("%s was reached", q.URL) }))
	defer inside.Close()
	insideHost := strings.TrimPrefix(inside.URL, "http://")
	r := newRig(t, remotetest.Options{}, transport.Options{})
	query := "/info/refs?service=git-upload-pack"
	for to, target := range map[string]string{
		inside.URL + "/notes.git" + query:                     "127.0.0.1",
		"https://" + insideHost + "/notes.git" + query:        "127.0.0.1",
		"//" + insideHost + "/notes.git" + query:              "127.0.0.1",
		"http://169.254.169.254/latest/meta-data/" + query:    "169.254.169.254",
		"http://[::1]:1/notes.git" + query:                    "::1",
		"http://me:pw@" + r.Host() + "/other.git" + query:     "127.0.0.1", // the same host, with a user name
		"http://evil.example/" + query:                        "evil.example",
		"file:///etc/passwd":                                  "",
		"ext::touch /tmp/x":                                   "",
		"gopher://127.0.0.1:25/":                              "127.0.0.1",
		r.URL("notes") + "/../../../etc" + query:              "127.0.0.1",
		"/login?return_to=notes":                              "127.0.0.1", // the same host, but not a repository
		"/notes.git/info/refs?service=git-upload-pack&x=y":    "127.0.0.1",
		"/notes.git?a=b#" + query:                             "127.0.0.1",
		"http://evil.example\x00.127.0.0.1/notes.git" + query: "",
	} {
		r.Inject(func(remotetest.Request) remotetest.Fault { return remotetest.Redirect(http.StatusFound, to) })
		_, err := r.c.List(t.Context(), r.endpoint())
		if p := transport.ProblemOf(err); (p == transport.Malformed || p == transport.Network) && strings.Contains(to, "\x00") {
			continue
		}
		if e := fails(t, err, transport.Moved); e.Target != target {
			t.Errorf("%q: moved to %q, want %q", to, e.Target, target)
		}
		fails(t, r.c.Fetch(t.Context(), r.endpoint(), repo(t), "main", "refs/heads/x", 0, nil), transport.Moved)
	}
	// A redirect loop.
	r.Inject(func(remotetest.Request) remotetest.Fault {
		return remotetest.Redirect(http.StatusMovedPermanently, r.URL("notes")+query)
	})
	r.Forget()
	_, err := r.c.List(t.Context(), r.endpoint())
	fails(t, err, transport.Moved)
	if n := len(r.Requests()); n > 5 {
		t.Errorf("a circle made %d requests", n)
	}
}

func TestARedirectOnTheSameHostIsFollowedAndTold(t *testing.T) {
	r := newRig(t, remotetest.Options{Username: "me", Password: secret}, transport.Options{})
	r.Create("renamed")
	head := r.Push("renamed", "main", map[string]string{"a.md": "renamed\n"})
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		if q.Repo != "notes" {
			return remotetest.Fault{}
		}
		return remotetest.Redirect(http.StatusMovedPermanently, strings.Replace(q.Path, "notes", "renamed", 1)+"?service="+q.Query.Get("service"))
	})
	e := r.endpoint()
	e.Credential = space.Credential{Username: "me", Secret: secret}
	refs, err := r.c.List(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if string(refs.Heads["main"]) != head || refs.URL != r.URL("renamed") {
		t.Errorf("listed %+v", refs)
	}
	e.URL = refs.URL
	if err := r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, nil); err != nil {
		t.Error(err)
	}
}

// Attack: a remote sends more than a space may hold.
func TestAFetchIsLimited(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{SizeEvery: time.Millisecond})
	files := map[string]string{}
	for i := range 40 {
		files[strconv.Itoa(i)] = noise(64<<10, byte(i))
	}
	r.Push("notes", "main", files)
	var posts atomic.Int64
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		if q.Stage != remotetest.StageFetch || posts.Add(1) == 1 { // the first request lists the refs
			return remotetest.Fault{}
		}
		return remotetest.Fault{Response: remotetest.Trouble{After: 1 << 20, Stall: true}}
	})
	fails(t, r.c.Fetch(t.Context(), r.endpoint(), repo(t), "main", "refs/heads/x", 300<<10, nil), transport.OverLimit)
	r.Inject(nil)
	dir := repo(t)
	if err := r.c.Fetch(t.Context(), r.endpoint(), dir, "main", "refs/heads/x", 8<<20, nil); err != nil {
		t.Errorf("under the limit: %v", err)
	}
	// Existing objects do not count.
	r.Push("notes", "main", map[string]string{"more": "little"})
	if err := r.c.Fetch(t.Context(), r.endpoint(), dir, "main", "refs/heads/x", 300<<10, nil); err != nil {
		t.Errorf("a small change of a large repository: %v", err)
	}
}

// noise returns text that cannot be compressed.
func noise(n int, seed byte) string {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return string(b)
}

// Attack: an advertisement that never ends.
func TestTheAdvertisementIsLimited(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{MaxAdvertised: 64 << 10})
	id := strings.Repeat("a", 40)
	advertise := func(tags int) {
		body := packet("# service=git-upload-pack\n") + "0000" + packet(id+" refs/heads/main\x00\n") +
			strings.Repeat(packet(id+" refs/tags/endless\n"), tags) + "0000"
		r.Inject(func(remotetest.Request) remotetest.Fault {
			f := remotetest.Status(http.StatusOK, body)
			f.Answer.Header = http.Header{"Content-Type": {"application/x-git-upload-pack-advertisement"}}
			return f
		})
	}
	advertise(10)
	if _, err := r.c.List(t.Context(), r.endpoint()); err != nil {
		t.Fatal(err)
	}
	advertise(4000)
	_, err := r.c.List(t.Context(), r.endpoint())
	fails(t, err, transport.Malformed)
}

// Attack: objects that would write into .git, or break programs that read them.
func TestDangerousObjectsAreNotTaken(t *testing.T) {
	for name, entry := range map[string]string{
		"a tree with .git":  ".git",
		"a tree with .GIT":  ".GIT",
		"a tree with git~1": "git~1",
		"a tree with ..":    "..",
	} {
		r := newRig(t, remotetest.Options{}, transport.Options{})
		dir := r.Dir("notes")
		bad := commit(t, dir, "", "placeholder", "x\n")
		tree := run(t, dir, "rev-parse", bad+"^{tree}")
		raw := run(t, dir, "rev-parse", bad+":placeholder")
		bad = rawTree(t, dir, entry, raw)
		if bad == tree {
			t.Fatal("no dangerous tree was made")
		}
		id := run(t, dir, "commit-tree", "-m", "bad", bad)
		r.Git("notes", "update-ref", "refs/heads/main", id)
		into := repo(t)
		e := fails(t, r.c.Fetch(t.Context(), r.endpoint(), into, "main", "refs/heads/x", 0, nil), transport.Malformed)
		if len(e.Said) == 0 || !strings.Contains(strings.ToLower(e.Said[0]), "dot") {
			t.Errorf("%s: the reason is %q: %v", name, e.Said, e)
		}
		if got := run(t, into, "for-each-ref"); got != "" {
			t.Errorf("%s: it was taken: %s", name, got)
		}
	}
}
