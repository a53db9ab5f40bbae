package transport_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// pushing prepares the push of a new commit on top of a remote's main.
func (r *rig) pushing(dir string) func() error {
	base := r.Head("notes", "main")
	if err := r.c.Fetch(r.t.Context(), r.endpoint(), dir, "main", "refs/remotes/origin/main", 0, nil); err != nil {
		r.t.Fatal(err)
	}
	id := space.CommitID(commit(r.t, dir, base, "b.md", "mine, after "+base+"\n"))
	return func() error { return r.c.Push(r.t.Context(), r.endpoint(), dir, id, "main", nil) }
}

func TestEachStatusIsItsProblem(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	dir := repo(t)
	push := r.pushing(dir)
	limited403 := remotetest.Status(http.StatusForbidden, "You have exceeded a secondary rate limit.\n")
	limited403.Answer.Header = http.Header{"Retry-After": {"60"}}
	exhausted := remotetest.Status(http.StatusForbidden, "API rate limit exceeded\n")
	exhausted.Answer.Header = http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"4102444800"}}
	later := remotetest.Status(http.StatusServiceUnavailable, "down for maintenance\n")
	later.Answer.Header = http.Header{"Retry-After": {time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat)}}
	for _, c := range []struct {
		name      string
		fault     remotetest.Fault
		want      transport.Problem
		retry     time.Duration // only List sees the header; within a minute
		temporary bool
	}{
		{"401", remotetest.Unauthorized(), transport.Auth, 0, false},
		{"403", remotetest.Forbidden(), transport.Forbidden, 0, false},
		{"403 archived", remotetest.Status(403, "This repository was archived so it is read-only.\n"), transport.Forbidden, 0, false},
		{"403 with Retry-After", limited403, transport.RateLimited, time.Minute, true},
		{"403 with an exhausted limit", exhausted, transport.RateLimited, 24 * time.Hour, true},
		{"404", remotetest.NotFound(), transport.Gone, 0, false},
		{"410", remotetest.Status(410, "gone\n"), transport.Gone, 0, false},
		{"451", remotetest.Status(451, "Repository access blocked\n"), transport.Gone, 0, false},
		{"409", remotetest.Status(409, "conflict\n"), transport.Busy, 0, true},
		{"423", remotetest.Status(423, "locked\n"), transport.Busy, 0, true},
		{"429", remotetest.RateLimited("7"), transport.RateLimited, 7 * time.Second, true},
		{"429 with nonsense", remotetest.RateLimited("soon"), transport.RateLimited, 0, true},
		{"429 with a negative time", remotetest.RateLimited("-5"), transport.RateLimited, 0, true},
		{"500", remotetest.Status(500, "oops\n"), transport.Server, 0, true},
		{"502", remotetest.Status(502, ""), transport.Server, 0, true},
		{"503 with a date", later, transport.Server, 2 * time.Hour, true},
		{"504", remotetest.Status(504, ""), transport.Server, 0, true},
		{"507", remotetest.Status(507, ""), transport.DiskFull, 0, false},
		{"418", remotetest.Status(418, "I'm a teapot\n"), transport.Unknown, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Inject(func(remotetest.Request) remotetest.Fault { return c.fault })
			defer r.Inject(nil)
			_, err := r.c.List(t.Context(), r.endpoint())
			e := fails(t, err, c.want)
			if e.Status != c.fault.Answer.Status || e.Host != "127.0.0.1" || e.Op != "list" {
				t.Errorf("got %+v", e)
			}
			if d := e.RetryAfter - c.retry; d > time.Minute || d < -time.Minute || (c.retry == 0) != (e.RetryAfter == 0) {
				t.Errorf("to be tried again after %s, want %s", e.RetryAfter, c.retry)
			}
			if e.Temporary() != c.temporary {
				t.Errorf("temporary is %t", e.Temporary())
			}
			e = fails(t, r.c.Fetch(t.Context(), r.endpoint(), repo(t), "main", "refs/heads/x", 0, nil), c.want)
			if e.Op != "fetch" || e.Branch != "main" {
				t.Errorf("got %+v", e)
			}
			fails(t, push(), c.want)
		})
	}
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		if q.Stage == remotetest.StagePush {
			return remotetest.Status(http.StatusRequestEntityTooLarge, "too large\n")
		}
		return remotetest.Fault{}
	})
	fails(t, push(), transport.TooLarge)
	r.Inject(nil)
	if err := push(); err != nil {
		t.Errorf("after all healed: %v", err)
	}
}

func TestABrokenTransferIsOneOfTheNetwork(t *testing.T) {
	for _, stage := range []remotetest.Stage{remotetest.StageFetchRefs, remotetest.StageFetch, remotetest.StagePushRefs, remotetest.StagePush} {
		for name, c := range map[string]struct {
			fault remotetest.Fault
			want  []transport.Problem
		}{
			"request cut":          {remotetest.Fault{Request: remotetest.Trouble{After: 50, Cut: true}}, []transport.Problem{transport.Network}},
			"cut before an answer": {remotetest.Fault{Response: remotetest.Trouble{Cut: true}}, []transport.Problem{transport.Network}},
			"cut in the answer":    {remotetest.Fault{Response: remotetest.Trouble{After: 20, Cut: true}}, []transport.Problem{transport.Network}},
			"reset in the answer":  {remotetest.Fault{Response: remotetest.Trouble{After: 20, Cut: true, Reset: true}}, []transport.Problem{transport.Network}},
			"truncated answer":     {remotetest.Fault{Response: remotetest.Trouble{After: 20, Truncate: true}}, []transport.Problem{transport.Network, transport.Malformed, transport.Timeout}},
			"corrupt answer":       {remotetest.Fault{Response: remotetest.Trouble{After: 3, Corrupt: true}}, []transport.Problem{transport.Malformed, transport.Network, transport.Server, transport.Unknown, transport.Gone}},
			"stalled answer":       {remotetest.Fault{Response: remotetest.Trouble{After: 20, Stall: true}}, []transport.Problem{transport.Timeout}},
		} {
			t.Run(string(stage)+" "+name, func(t *testing.T) {
				t.Parallel()
				// A new server, because a server whose answer was cut may still be busy.
				r := newRig(t, remotetest.Options{}, transport.Options{})
				r.Push("notes", "main", map[string]string{"large.bin": noise(100<<10, 1)})
				push := r.pushing(repo(t))
				// A limit only for answers that never end, since a good one takes its time on a
				// busy machine.
				o := transport.Options{LowSpeed: 1000}
				switch {
				case c.fault.Response.Stall:
					o.LowSpeedTime = time.Second
				case c.fault.Response.Truncate:
					o.StallTimeout = 5 * time.Second
				}
				r.c.Close()
				r.c = transport.New(o)
				r.Inject(func(q remotetest.Request) remotetest.Fault {
					if q.Stage == stage {
						return c.fault
					}
					return remotetest.Fault{}
				})
				var err error
				if stage == remotetest.StageFetchRefs || stage == remotetest.StageFetch {
					err = r.c.Fetch(t.Context(), r.endpoint(), repo(t), "main", "refs/heads/x", 0, nil)
				} else {
					err = push()
				}
				if c.fault.Request.Cut && strings.HasSuffix(string(stage), "refs") && err == nil {
					return // a GET has no body that could be cut
				}
				got := transport.ProblemOf(err)
				for _, w := range c.want {
					if got == w {
						return
					}
				}
				t.Errorf("got %s, want one of %v: %v", got, c.want, err)
			})
		}
	}
}

func TestADrippingServerIsLeft(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{LowSpeed: 1000, LowSpeedTime: time.Second, ListTimeout: 50 * time.Millisecond})
	r.Push("notes", "main", map[string]string{"large.bin": noise(200<<10, 1)})
	r.Inject(func(remotetest.Request) remotetest.Fault {
		return remotetest.Fault{Response: remotetest.Trouble{Drip: 1, Every: 20 * time.Millisecond}}
	})
	everyCall(t, r.c, r.endpoint(), transport.Timeout)
}

func TestWhatIsNoGitRemote(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	for name, body := range map[string][2]string{
		"a web page":          {"text/html", "<html>welcome</html>"},
		"a dumb server":       {"text/plain", strings.Repeat("a", 40) + "\trefs/heads/main\n"},
		"an empty answer":     {"application/x-git-upload-pack-advertisement", ""},
		"a page so called":    {"application/x-git-upload-pack-advertisement", "<html>welcome</html>"},
		"another service":     {"application/x-git-upload-pack-advertisement", packet("# service=git-receive-pack\n") + "0000"},
		"an ERR line":         {"application/x-git-upload-pack-advertisement", packet("ERR Repository not found.")},
		"a line that is none": {"application/x-git-upload-pack-advertisement", packet("# service=git-upload-pack\n") + "0000" + packet("no ref\n") + "0000"},
	} {
		r.Inject(func(remotetest.Request) remotetest.Fault {
			f := remotetest.Status(http.StatusOK, body[1])
			f.Answer.Header = http.Header{"Content-Type": {body[0]}}
			return f
		})
		_, err := r.c.List(t.Context(), r.endpoint())
		switch got := transport.ProblemOf(err); {
		case got == transport.Malformed:
		case name == "an empty answer" && got == transport.Network:
		case name == "an ERR line" && got == transport.Gone:
		default:
			t.Errorf("%s: got %s: %v", name, got, err)
		}
	}
}

// packet returns a pkt-line.
func packet(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

func TestTheNetworksFailures(t *testing.T) {
	r := newRig(t, remotetest.Options{TLS: true}, transport.Options{})
	e := r.endpoint()
	e.CAFile = ""
	everyCall(t, r.c, e, transport.TLS) // an unknown certificate authority
	e.CAFile = filepath.Join(t.TempDir(), "missing.pem")
	_, err := r.c.List(t.Context(), e)
	fails(t, err, transport.TLS)
	if strings.Contains(err.Error(), "missing.pem") {
		t.Errorf("the error names a file of the host: %v", err)
	}
	e = r.endpoint()
	e.URL = strings.Replace(e.URL, "https:", "http:", 1)
	_, err = r.c.List(t.Context(), e)
	if p := transport.ProblemOf(err); p != transport.Unknown && p != transport.Network { // 400 is the answer of Go's server
		t.Errorf("http to a TLS port: %v", err)
	}
	e.URL = "https://127.0.0.1:1/notes.git"
	everyCall(t, r.c, e, transport.Network) // the connection is refused
	r.Close()
	everyCall(t, r.c, r.endpoint(), transport.Network)
	c := transport.New(transport.Options{Git: gitcmd.Runner{Program: "git-that-is-not-installed"}})
	fails(t, c.Push(t.Context(), e, repo(t), space.CommitID(strings.Repeat("a", 40)), "main", nil), transport.NoGit)
}

func TestDirectoriesThatAreNone(t *testing.T) {
	c := transport.New(transport.Options{})
	everyCall(t, c, transport.Endpoint{URL: filepath.Join(t.TempDir(), "none"), Trusted: true}, transport.Gone)
	everyCall(t, c, transport.Endpoint{URL: t.TempDir(), Trusted: true}, transport.Gone)
}

func TestRemotesOfEachShape(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	list := func(e transport.Endpoint) transport.Refs {
		t.Helper()
		refs, err := r.c.List(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return refs
	}
	ends := func(name string) []transport.Endpoint {
		return []transport.Endpoint{{URL: r.URL(name), Trusted: true}, {URL: r.Dir(name), Trusted: true}}
	}

	r.Create("empty")
	for _, e := range ends("empty") {
		if refs := list(e); !refs.Empty || len(refs.Heads) != 0 {
			t.Errorf("an empty one: %+v", refs)
		}
		fails(t, r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, nil), transport.NoBranch)
		fails(t, r.c.Fetch(t.Context(), e, repo(t), "", "refs/heads/x", 0, nil), transport.NoBranch)
	}

	r.Create("renamed")
	tip := r.Push("renamed", "trunk", map[string]string{"a": "b"})
	r.Git("renamed", "symbolic-ref", "HEAD", "refs/heads/trunk")
	r.Git("renamed", "update-ref", "refs/heads/other", tip)
	r.Git("renamed", "update-ref", "refs/heads/a.lock.x/ünï", tip)
	r.Git("renamed", "update-ref", "refs/pull/1/head", tip)
	r.Git("renamed", "tag", "-a", "-m", "v1", "v1", tip)
	for _, e := range ends("renamed") {
		refs := list(e)
		if refs.Default != "trunk" || len(refs.Heads) != 3 || string(refs.Heads["trunk"]) != tip {
			t.Errorf("a renamed branch: %+v", refs)
		}
		dir := repo(t)
		if err := r.c.Fetch(t.Context(), e, dir, "", "refs/heads/x", 0, nil); err != nil || run(t, dir, "rev-parse", "refs/heads/x") != tip {
			t.Errorf("a fetch of HEAD: %v", err)
		}
		fails(t, r.c.Fetch(t.Context(), e, dir, "main", "refs/heads/x", 0, nil), transport.NoBranch)
	}

	// HEAD does not name a branch.
	r.Git("renamed", "update-ref", "--no-deref", "-d", "HEAD")
	os.WriteFile(filepath.Join(r.Dir("renamed"), "HEAD"), []byte(tip+"\n"), 0o644)
	for _, e := range ends("renamed") {
		if refs := list(e); refs.Default != "" {
			t.Errorf("a detached HEAD, at two branches: %+v", refs)
		}
	}

	// The remote is a shallow clone.
	r.Push("notes", "main", map[string]string{"a.md": "two\n"})
	run(t, "", "clone", "-q", "--bare", "--depth", "1", "file://"+r.Dir("notes"), r.Dir("shallow"))
	for _, e := range ends("shallow") {
		if refs := list(e); !refs.Shallow || refs.Empty {
			t.Errorf("a shallow one: %+v", refs)
		}
		fails(t, r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, nil), transport.Shallow)
	}
}

func TestABranchThatIsLockedIsBusy(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	push := r.pushing(repo(t))
	lock := filepath.Join(r.Dir("notes"), "refs", "heads", "main.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, push(), transport.Busy)
	os.Remove(lock)
	if err := push(); err != nil {
		t.Error(err)
	}
}

func TestARemoteThatMovesDuringAPushIsStale(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	push := r.pushing(repo(t))
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		if q.Stage != remotetest.StagePush {
			return remotetest.Fault{}
		}
		// Push between the remote's advertisement and the client's request.
		return remotetest.Fault{Request: remotetest.Trouble{Do: func() { r.Push("notes", "main", map[string]string{"c.md": "theirs\n"}) }}}
	})
	if e := fails(t, push(), transport.Stale); !e.Temporary() {
		t.Error("it is not tried again")
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	push := r.pushing(repo(t))
	id := strings.Repeat("5477a7dd", 5)
	for _, c := range []struct {
		name    string
		refusal remotetest.Refusal
		want    transport.Problem
		places  []space.RemoteLocation
	}{
		{"a large file", remotetest.LargeFile("films/a b.mov"), transport.TooLarge, []space.RemoteLocation{{Path: "films/a b.mov", Rule: "120.00 MB"}}},
		{"a protected branch", remotetest.ProtectedBranch("main"), transport.ProtectedBranch, nil},
		{"a ruleset", remotetest.Ruleset("main"), transport.ProtectedBranch, nil},
		{"push protection", remotetest.PushProtection("main", id, "notes/keys.md", 34), transport.Secret, []space.RemoteLocation{{Commit: space.CommitID(id), Path: "notes/keys.md", Line: 34, Rule: "Amazon AWS Access Key ID"}}},
		{"a workflow", remotetest.WorkflowPermission(".github/workflows/x.yml"), transport.Workflow, []space.RemoteLocation{{Path: ".github/workflows/x.yml"}}},
		{"a hook that says why", remotetest.Refusal{Text: "Commit messages need a ticket.\n"}, transport.Rejected, nil},
		{"a hook that says nothing", remotetest.Refusal{Reason: "no"}, transport.Rejected, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Refuse("notes", "main", c.refusal)
			e := fails(t, push(), c.want)
			if len(e.Paths) != len(c.places) || len(c.places) > 0 && e.Paths[0] != c.places[0] {
				t.Errorf("found %+v, want %+v", e.Paths, c.places)
			}
			if e.Temporary() || len(e.Said) == 0 {
				t.Errorf("got %+v", e)
			}
			for _, p := range c.places {
				if !strings.Contains(e.Public(), p.Path) {
					t.Errorf("%q does not name %s", e.Public(), p.Path)
				}
			}
			t.Log(e.Public(), e.Remedy())
		})
	}
}
