//go:build unix

package faults

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/internal/egress/egresstest"

	"golang.org/x/net/dns/dnsmessage"
)

// choice is the random number generator of the n-th time that something
// happens to a writer.
func (s *schedule) choice(what string) *rand.Rand {
	n := s.counts[what]
	s.counts[what]++
	h := fnv.New64a()
	h.Write([]byte(what + strconv.Itoa(n)))
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

// inject decides what becomes of a writer's request.
func (s *schedule) inject(r remotetest.Request) remotetest.Fault {
	user, _, _ := (&http.Request{Header: r.Header}).BasicAuth()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm {
		return remotetest.Fault{}
	}
	rng := s.choice(user + " " + string(r.Stage))
	rate := s.rate * 3 / 2
	if r.Stage == remotetest.StageFetchRefs {
		rate = s.rate / 2 // every transfer begins so: let most get further
	}
	if rng.IntN(100) >= rate {
		return remotetest.Fault{}
	}
	// Near the beginning, somewhere, or when all has passed.
	at := []int64{rng.Int64N(40), rng.Int64N(1500), 1 << 40}[rng.IntN(3)]
	name := func(n string, f remotetest.Fault) remotetest.Fault {
		f.Name = string(r.Stage) + ": " + n
		return f
	}
	switch k := rng.IntN(100); {
	case k < 4:
		return name("401", remotetest.Unauthorized())
	case k < 8:
		return name("403", remotetest.Forbidden())
	case k < 11:
		return name("404", remotetest.NotFound())
	case k < 13:
		return name("409", remotetest.Status(http.StatusConflict, "conflict\n"))
	case k < 15:
		return name("413", remotetest.Status(http.StatusRequestEntityTooLarge, "too large\n"))
	case k < 19:
		return name("429", remotetest.RateLimited([]string{"", "1", "Wed, 21 Oct 2015 07:28:00 GMT", "soon"}[rng.IntN(4)]))
	case k < 22:
		return name("500", remotetest.Status(http.StatusInternalServerError, "oops\n"))
	case k < 24:
		return name("502", remotetest.Status(http.StatusBadGateway, "<html>bad gateway</html>\n"))
	case k < 27:
		return name("503", remotetest.Status(http.StatusServiceUnavailable, "busy\n"))
	case k < 29:
		return name("redirect", remotetest.Redirect(http.StatusMovedPermanently, "https://elsewhere.test/x.git"+r.Path))
	case k < 31:
		return name("200 with a page", remotetest.Status(http.StatusOK, "<html>sign in</html>\n"))
	case k < 39:
		return name("request cut", remotetest.Fault{Request: remotetest.Trouble{After: at, Cut: true}})
	case k < 43:
		return name("request reset", remotetest.Fault{Request: remotetest.Trouble{After: at, Cut: true, Reset: true}})
	case k < 47:
		return name("request truncated", remotetest.Fault{Request: remotetest.Trouble{After: at, Truncate: true}})
	case k < 50:
		return name("request corrupted", remotetest.Fault{Request: remotetest.Trouble{After: at, Corrupt: true}})
	case k < 60:
		return name("answer cut", remotetest.Fault{Response: remotetest.Trouble{After: at, Cut: true}})
	case k < 64:
		return name("answer reset", remotetest.Fault{Response: remotetest.Trouble{After: at, Cut: true, Reset: true}})
	case k < 67:
		// git waits for ever for the rest of an answer to a push that ends
		// well before its end, so this one costs the writer's StallTimeout.
		if r.Stage == remotetest.StagePush && rng.IntN(4) > 0 {
			return remotetest.Fault{}
		}
		return name("answer truncated", remotetest.Fault{Response: remotetest.Trouble{After: at, Truncate: true}})
	case k < 71:
		return name("answer corrupted", remotetest.Fault{Response: remotetest.Trouble{After: at, Corrupt: true}})
	case k < 72:
		return name("answer stalls", remotetest.Fault{Response: remotetest.Trouble{After: at, Stall: true}})
	case k < 76:
		return name("slow drip", remotetest.Fault{Response: remotetest.Trouble{After: at, Drip: 60, Every: time.Millisecond}})
	case k < 80:
		return name("slow upload", remotetest.Fault{Request: remotetest.Trouble{After: at, Drip: 60, Every: time.Millisecond}})
	case k < 90:
		return name("kill while it sends", remotetest.Fault{Request: remotetest.Trouble{After: at, Do: s.killOf(user)}})
	default:
		return name("kill while it receives", remotetest.Fault{Response: remotetest.Trouble{After: at, Do: s.killOf(user)}})
	}
}

// killOf kills a writer in the middle of one of its requests.
func (s *schedule) killOf(user string) func() {
	return func() {
		for _, p := range s.procs {
			if p.Name == user && p.alive() && s.mayKill() && p.kill() {
				s.stats.add("killed at a byte of a request", 1)
			}
		}
	}
}

// resolve answers for a writer's host name.
func (s *schedule) resolve(q dnsmessage.Question) ([]netip.Addr, dnsmessage.RCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writer, _, _ := strings.Cut(q.Name.String(), ".")
	if rng := s.choice("dns " + writer); s.calm || rng.IntN(100) >= s.rate/2 {
		return egresstest.Addrs("127.0.0.1"), dnsmessage.RCodeSuccess
	} else if rng.IntN(2) == 0 {
		s.stats.add("fault: dns: no such name", 1)
		return nil, dnsmessage.RCodeNameError
	}
	s.stats.add("fault: dns: failure", 1)
	return nil, dnsmessage.RCodeServerFailure
}

// refusePushes lets a hook of the remote, or a lock that somebody left there,
// refuse pushes; or takes them again.
func (s *schedule) refusePushes() {
	lock := filepath.Join(s.srv.Dir(repoName), "refs", "heads", s.branch+".lock")
	switch s.rng.IntN(7) {
	case 0:
		s.srv.Refuse(repoName, s.branch, remotetest.ProtectedBranch(s.branch))
	case 1:
		s.srv.Refuse(repoName, s.branch, remotetest.PushProtection(s.branch, "0123456789012345678901234567890123456789", "a.md", 3))
	case 2:
		s.srv.Refuse(repoName, s.branch, remotetest.LargeFile("p.bin"))
	case 3:
		s.srv.Refuse(repoName, s.branch, remotetest.WorkflowPermission(".github/workflows/x.yml"))
	case 4:
		s.must(os.WriteFile(lock, nil, 0o644))
	default:
		s.takePushes()
		return
	}
	s.note("pushes are refused")
	s.stats.add("fault: pushes refused by the remote", 1)
}

func (s *schedule) takePushes() {
	s.srv.Refuse(repoName, s.branch, remotetest.Refusal{})
	lock := filepath.Join(s.srv.Dir(repoName), "refs", "heads", s.branch+".lock")
	if err := os.Remove(lock); err != nil && !os.IsNotExist(err) {
		s.must(err)
	}
}
