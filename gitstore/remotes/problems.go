package remotes

import (
	"errors"
	"syscall"
	"time"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Problem is a stable word for why a sync failed: one of transport's problems, or one of the
// constants below.
type Problem = transport.Problem

// The problems in addition to transport's.
const (
	// NoToken means that there is no stored secret, or that this server's key cannot
	// decrypt it.
	NoToken Problem = "no_token"
	// NoAccess means that the GitHub App gets no token for the repository.
	NoAccess Problem = "no_access"
	// Restless means that the remote moved before every push of a sync.
	Restless Problem = "restless"
	// Missing means that the space itself is not on this server.
	Missing Problem = "missing"
	// Internal means that this server itself failed.
	Internal Problem = "internal"
)

// trouble describes a failed sync for people.
type trouble struct {
	problem        Problem
	detail, remedy string
	locations      []space.RemoteLocation
	retryAfter     time.Duration
	// slow means that only a person can solve the problem.
	slow bool
	err  error // for the log
}

// ownError is an error of this server itself, with the problem that the error means.
type ownError struct {
	problem Problem
	err     error
}

func (e *ownError) Error() string { return string(e.problem) + ": " + e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }

// problemOf returns the problem in err's tree, "" for a nil err, and Internal for an error
// without a problem.
func problemOf(err error) Problem {
	var own *ownError
	var remote *transport.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &own):
		return own.problem
	case errors.As(err, &remote):
		return remote.Problem
	case errors.Is(err, errRestless):
		return Restless
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return transport.DiskFull
	}
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return Missing
	case fault.TooLarge:
		return transport.OverLimit
	case fault.Invalid:
		return transport.Malformed
	}
	return Internal
}

// isSlow reports whether only a person can solve the problem.
func isSlow(p Problem) bool {
	switch p {
	case NoToken, NoAccess, Missing:
		return true
	case Restless, Internal:
		return false
	}
	return !(&transport.Error{Problem: p}).Temporary()
}

// asRemote finds transport's error in err's tree.
func asRemote(err error, e **transport.Error) bool { return errors.As(err, e) }

// resultOf names how a step ended, for metrics.
func resultOf(err error) string {
	if err == nil {
		return "ok"
	}
	return string(problemOf(err))
}
