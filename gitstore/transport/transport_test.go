package transport_test

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/egress"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret looks like no other text, so that tests can search for it.
const secret = "canary+7/f3:9%d1b8 e2"

// rig is a remote and a client that may reach it.
type rig struct {
	*remotetest.Server
	c *transport.Client
	t *testing.T
}

// newRig starts a remote with the repository "notes", whose main has a file.
func newRig(t *testing.T, so remotetest.Options, o transport.Options) *rig {
	t.Helper()
	r := &rig{Server: remotetest.New(t, so), t: t}
	r.Create("notes")
	r.Push("notes", "main", map[string]string{"a.md": "one\n"})
	r.c = transport.New(o)
	t.Cleanup(func() { r.c.Close() })
	return r
}

// proxy returns an egress proxy that allows the remote's address as if it were on the public
// internet.
func proxy(t *testing.T, o egress.Options) *egress.Proxy {
	t.Helper()
	p, err := egress.NewProxy(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func loopback(hosts ...string) egress.Options {
	o := egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, h := range hosts {
		_, port, _ := strings.Cut(h, ":")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			panic(err)
		}
		o.Ports = append(o.Ports, uint16(n))
	}
	return o
}

func (r *rig) endpoint() transport.Endpoint {
	return transport.Endpoint{URL: r.URL("notes"), Trusted: true, CAFile: r.CAFile()}
}

// repo creates an empty repository.
func repo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo.git")
	run(t, "", "init", "-q", "--bare", "-b", "main", dir)
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if dir != "" {
		args = append([]string{"--git-dir=" + dir}, args...)
	}
	out, err := testenv.Git(t, "", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit creates a commit on parent (none if empty) that changes the content of one file.
func commit(t *testing.T, dir, parent, name, content string) string {
	t.Helper()
	cmd := testenv.Git(t, dir, "hash-object", "-w", "--stdin")
	cmd.Stdin = strings.NewReader(content)
	blob, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd = testenv.Git(t, dir, "mktree")
	cmd.Stdin = strings.NewReader("100644 blob " + strings.TrimSpace(string(blob)) + "\t" + name + "\n")
	tree, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"commit-tree", "-m", "Change " + name, strings.TrimSpace(string(tree))}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return run(t, dir, args...)
}

// fails checks that a call failed with a problem, and returns the error.
func fails(t *testing.T, err error, want transport.Problem) *transport.Error {
	t.Helper()
	var e *transport.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want the problem %s", err, err, want)
	}
	if e.Problem != want {
		t.Fatalf("got the problem %s, want %s: %v (said %q)", e.Problem, want, err, e.Said)
	}
	if e.Public() == "" || e.Remedy() == "" {
		t.Errorf("%s has no words", want)
	}
	return e
}

func TestListsFetchesAndPushes(t *testing.T) {
	for _, way := range []string{"http, trusted", "https through the proxy, with a private authority", "a directory", "a file URL", "a directory with a blank"} {
		t.Run(way, func(t *testing.T) {
			so := remotetest.Options{Username: "me", Password: secret, TLS: strings.HasPrefix(way, "https")}
			r := newRig(t, so, transport.Options{})
			e := r.endpoint()
			e.Credential = space.Credential{Username: "me", Secret: secret}
			switch way {
			case "https through the proxy, with a private authority":
				e.Trusted = false
				r.c = transport.New(transport.Options{Egress: proxy(t, loopback(r.Host()))})
				t.Cleanup(func() { r.c.Close() })
			case "a directory":
				e.URL = r.Dir("notes")
			case "a directory with a blank":
				e.URL = filepath.Join(t.TempDir(), "my ünotes: a::b.git")
				if err := os.Symlink(r.Dir("notes"), e.URL); err != nil {
					t.Fatal(err)
				}
			case "a file URL":
				e.URL = "file://" + r.Dir("notes")
			}
			main := space.CommitID(r.Head("notes", "main"))
			refs, err := r.c.List(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			if refs.Heads["main"] != main || len(refs.Heads) != 1 || refs.Default != "main" || refs.Empty || refs.Shallow || refs.URL != e.URL {
				t.Errorf("listed %+v, want main at %s", refs, main)
			}

			dir := repo(t)
			var told []string
			tell := func(s string) { told = append(told, s) }
			if err := r.c.Fetch(t.Context(), e, dir, "main", "refs/remotes/origin/main", 1<<20, tell); err != nil {
				t.Fatal(err)
			}
			if got := run(t, dir, "rev-parse", "refs/remotes/origin/main"); got != string(main) {
				t.Errorf("fetched %s, want %s", got, main)
			}
			if got := run(t, dir, "for-each-ref", "--format=%(refname)"); got != "refs/remotes/origin/main" {
				t.Errorf("the fetch made %q", got)
			}
			if len(told) == 0 {
				t.Error("no progress was told")
			}

			told = nil
			mine := commit(t, dir, string(main), "b.md", "two\n")
			if err := r.c.Push(t.Context(), e, dir, space.CommitID(mine), "main", tell); err != nil {
				t.Fatal(err)
			}
			if got := r.Head("notes", "main"); got != mine {
				t.Errorf("the remote is at %s, want %s", got, mine)
			}
			if len(told) == 0 {
				t.Error("no progress was told")
			}
			if err := r.c.Push(t.Context(), e, dir, space.CommitID(mine), "a/new.branch", nil); err != nil {
				t.Fatal(err)
			}
			if got := r.Head("notes", "a/new.branch"); got != mine {
				t.Errorf("the new branch is at %s, want %s", got, mine)
			}
			if err := r.c.Push(t.Context(), e, dir, space.CommitID(mine), "main", nil); err != nil {
				t.Errorf("a push of what is there already: %v", err)
			}
		})
	}
}

// git normalises URLs, and must find the credential for each form.
func TestTheCredentialIsSentHoweverTheURLIsWritten(t *testing.T) {
	r := newRig(t, remotetest.Options{Username: "me", Password: secret}, transport.Options{})
	for _, url := range []string{
		r.URL("notes"), r.URL("notes") + "/", strings.Replace(r.URL("notes"), "http:", "HTTP:", 1),
		strings.Replace(r.URL("notes"), "127.0.0.1", "LocalHost", 1), strings.Replace(r.URL("notes"), "notes", "n%6Ft%65s", 1),
	} {
		e := transport.Endpoint{URL: url, Trusted: true, Credential: space.Credential{Username: "me", Secret: secret}}
		if _, err := r.c.List(t.Context(), e); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		dir := repo(t)
		if err := r.c.Fetch(t.Context(), e, dir, "main", "refs/heads/x", 0, nil); err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		id := space.CommitID(commit(t, dir, r.Head("notes", "main"), "b.md", url))
		if err := r.c.Push(t.Context(), e, dir, id, "main", nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A pack over http.postBuffer is sent in chunks, after a probe.
func TestALargePushGoesThroughTheProxy(t *testing.T) {
	r := newRig(t, remotetest.Options{Username: "me", Password: secret, TLS: true}, transport.Options{})
	r.c = transport.New(transport.Options{Egress: proxy(t, loopback(r.Host()))})
	defer r.c.Close()
	e := transport.Endpoint{URL: r.URL("notes"), CAFile: r.CAFile(), Credential: space.Credential{Username: "me", Secret: secret}}
	dir := repo(t)
	if err := r.c.Fetch(t.Context(), e, dir, "main", "refs/heads/x", 0, nil); err != nil {
		t.Fatal(err)
	}
	id := space.CommitID(commit(t, dir, r.Head("notes", "main"), "large.bin", noise(3<<20, 7)))
	if err := r.c.Push(t.Context(), e, dir, id, "main", nil); err != nil {
		t.Fatal(err)
	}
	into := repo(t)
	if err := r.c.Fetch(t.Context(), e, into, "main", "refs/heads/x", 0, nil); err != nil {
		t.Fatal(err)
	}
	if got := run(t, into, "rev-parse", "refs/heads/x"); got != string(id) {
		t.Errorf("fetched %s, want %s", got, id)
	}
}

func TestAPushIsNeverForced(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	dir := repo(t)
	e := r.endpoint()
	if err := r.c.Fetch(t.Context(), e, dir, "main", "refs/remotes/origin/main", 0, nil); err != nil {
		t.Fatal(err)
	}
	base := r.Head("notes", "main")
	mine := commit(t, dir, base, "b.md", "mine\n")
	theirs := r.Push("notes", "main", map[string]string{"c.md": "theirs\n"})

	// The remote's commit is not here: "fetch first".
	fails(t, r.c.Push(t.Context(), e, dir, space.CommitID(mine), "main", nil), transport.Stale)
	// The remote's commit is here, but not in our history: "non-fast-forward".
	if err := r.c.Fetch(t.Context(), e, dir, "main", "refs/remotes/origin/main", 0, nil); err != nil {
		t.Fatal(err)
	}
	fails(t, r.c.Push(t.Context(), e, dir, space.CommitID(mine), "main", nil), transport.Stale)
	// An unrelated history, and an older commit of the remote.
	fails(t, r.c.Push(t.Context(), e, dir, space.CommitID(commit(t, dir, "", "d.md", "alone\n")), "main", nil), transport.Stale)
	fails(t, r.c.Push(t.Context(), e, dir, space.CommitID(base), "main", nil), transport.Stale)
	if got := r.Head("notes", "main"); got != theirs {
		t.Errorf("the remote moved to %s", got)
	}
	for _, id := range []space.CommitID{"", "0000000000000000000000000000000000000000", "+" + space.CommitID(mine), "main", "HEAD"} {
		if err := r.c.Push(t.Context(), e, dir, id, "main", nil); err == nil {
			t.Errorf("%q was pushed", id)
		}
	}
	if got := r.Head("notes", "main"); got != theirs {
		t.Errorf("the remote moved to %s", got)
	}
}

func TestAnEndedContextIsTheReason(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	why := errors.New("the server stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		return remotetest.Fault{Response: remotetest.Trouble{Stall: true, Do: func() { cancel(why) }}}
	})
	if _, err := r.c.List(ctx, r.endpoint()); !errors.Is(err, why) {
		t.Errorf("List: %v", err)
	}
	cancel(nil)
	ctx, cancel = context.WithCancelCause(t.Context())
	defer func() { cancel(nil) }()
	if err := r.c.Fetch(ctx, r.endpoint(), repo(t), "main", "refs/heads/x", 0, nil); !errors.Is(err, why) {
		t.Errorf("Fetch: %v", err)
	}
}

// rawTree writes a tree with one entry that git would refuse to write.
func rawTree(t *testing.T, dir, name, blob string) string {
	t.Helper()
	id, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	cmd := testenv.Git(t, dir, "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	cmd.Stdin = strings.NewReader("100644 " + name + "\x00" + string(id))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
