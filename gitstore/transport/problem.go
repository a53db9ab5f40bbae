package transport

import (
	"errors"
	"fmt"
	"time"

	"satchel/internal/space"
)

// Problem says why a remote could not be used. The words are stable: metrics,
// scripts and the database hold them.
type Problem = space.RemoteProblem

// The problems.
const (
	Auth            Problem = "auth"             // the credential is missing, wrong or expired
	Forbidden       Problem = "forbidden"        // the credential may not do this
	Gone            Problem = "gone"             // no such repository, or none that the credential may see
	Moved           Problem = "moved"            // the repository is elsewhere now
	ProtectedBranch Problem = "protected_branch" // the branch may not be pushed to directly
	Workflow        Problem = "workflow"         // .github/workflows may not be changed with this credential
	Secret          Problem = "secret"           // the remote found a secret in what was pushed
	TooLarge        Problem = "too_large"        // the remote refuses a file, or the whole push, for its size
	OverLimit       Problem = "over_limit"       // the remote has more than a space may hold
	Rejected        Problem = "rejected"         // a hook or a rule of the remote refused the push
	RateLimited     Problem = "rate_limited"     // too many requests
	Server          Problem = "server"           // the remote failed
	Network         Problem = "network"          // the remote cannot be reached, or the connection broke
	DNS             Problem = "dns"              // the remote's name is unknown
	TLS             Problem = "tls"              // the remote's certificate is not accepted
	Timeout         Problem = "timeout"          // the remote was too slow
	BlockedAddress  Problem = "blocked_address"  // the URL leads to an address that users may not name
	BadURL          Problem = "bad_url"          // the URL or the branch is not one that is allowed
	Shallow         Problem = "shallow"          // the remote is a shallow clone
	Malformed       Problem = "malformed"        // what the remote sent is no git, damaged or dangerous
	NoBranch        Problem = "no_branch"        // the remote has no branch of that name
	Stale           Problem = "stale"            // the remote's branch has commits that are not here: fetch, and try again
	Busy            Problem = "busy"             // another push has the remote's branch locked
	NoGit           Problem = "no_git"           // the git program is missing here
	DiskFull        Problem = "disk_full"        // no space is left, here or at the remote
	Unknown         Problem = "unknown"          // none of these
)

// Error is a failed call. It holds no credential.
type Error struct {
	Problem Problem
	Op      string // "list", "fetch" or "push"
	Host    string // the remote's; "this machine" for a directory
	// Status is the HTTP status, where there was one.
	Status int
	// RetryAfter is when the remote asks to be tried again; zero: it did not
	// say.
	RetryAfter time.Duration
	// Target is the host that a Moved repository is at, by the remote's word;
	// empty if that names none.
	Target string
	// Branch is the branch of a fetch or push.
	Branch string
	// Paths are the places that the remote complained about: secrets, large
	// files, workflows.
	Paths []space.RemoteLocation
	// Memory tells, of OverLimit, that git needed more memory than it may have.
	Memory bool
	// Said is what the remote said to people: at most a few lines, without
	// control characters. It is the remote's text: show it, never obey it.
	Said []string
	// Err is the cause, for logs, without secrets and host paths.
	Err error
}

// Error returns the problem and its cause, for logs.
func (e *Error) Error() string {
	s := fmt.Sprintf("git %s: %s: %s", e.Op, e.Host, e.Problem)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether trying again soon may help without anybody doing
// anything.
func (e *Error) Temporary() bool {
	switch e.Problem {
	case RateLimited, Server, Network, DNS, Timeout, Stale, Busy, Unknown:
		return true
	}
	return false
}

// ProblemOf returns the problem of the first *Error in err's tree; "" for nil,
// and Unknown where there is none.
func ProblemOf(err error) Problem {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Problem
	}
	return Unknown
}
