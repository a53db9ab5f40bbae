package transport

import (
	"fmt"
	"time"

	"satchel/internal/space"
)

// Problem is the reason why a remote could not be used. The words are stable: metrics, scripts
// and the database use them.
type Problem = space.RemoteProblem

// The problems.
const (
	Auth            Problem = "auth"             // the credential is missing, wrong or expired
	Forbidden       Problem = "forbidden"        // the credential may not do this
	Gone            Problem = "gone"             // no such repository, or none that the credential may see
	Moved           Problem = "moved"            // the repository has moved
	ProtectedBranch Problem = "protected_branch" // direct pushes to the branch are not allowed
	Workflow        Problem = "workflow"         // the credential must not change .github/workflows
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
	BlockedAddress  Problem = "blocked_address"  // the URL leads to an address that is forbidden to users
	BadURL          Problem = "bad_url"          // the URL or the branch is not allowed
	Shallow         Problem = "shallow"          // the remote is a shallow clone
	Malformed       Problem = "malformed"        // the remote's data is not git, or is damaged or dangerous
	NoBranch        Problem = "no_branch"        // the remote has no branch of that name
	Stale           Problem = "stale"            // the remote's branch has commits that are not here: fetch, and try again
	Busy            Problem = "busy"             // another push has the remote's branch locked
	NoGit           Problem = "no_git"           // the git program is missing here
	DiskFull        Problem = "disk_full"        // no space is left, here or at the remote
	Unknown         Problem = "unknown"          // none of these
)

// Error is a failed call. It contains no credential.
type Error struct {
	Problem Problem
	Op      string // "list", "fetch" or "push"
	Host    string // the host of the remote; "this machine" for a directory
	// Status is the HTTP status, if there was one.
	Status int
	// RetryAfter is how long the remote asks us to wait; zero if it did not say.
	RetryAfter time.Duration
	// Target is the host to which a repository has Moved, as the remote says. It may be empty.
	Target string
	// Branch is the branch of a fetch or push.
	Branch string
	// Paths are the places that the remote complained about: secrets, large
	// files, workflows.
	Paths []space.RemoteLocation
	// Memory means, for OverLimit, that git exceeded its memory limit.
	Memory bool
	// Said is the remote's message to people: a few lines without control characters. Show
	// this text, but do not trust it.
	Said []string
	// Err is the cause, for logs, without secrets and paths of this machine.
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

// Temporary reports whether a retry may help without anybody's action.
func (e *Error) Temporary() bool {
	switch e.Problem {
	case RateLimited, Server, Network, DNS, Timeout, Stale, Busy, Unknown:
		return true
	}
	return false
}
