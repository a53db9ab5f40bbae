// Package fault defines the error type that crosses package boundaries: a code that
// protocols map to their own codes, one message for the caller, and the cause, which only
// logs show.
//
// Inside a package, errors are wrapped with fmt.Errorf as usual. If the caller can fix an
// error (bad input, a missing file, a limit) or needs its kind, the package returns a
// *fault.Error. All other errors are Internal, and only logs show their text.
//
// New and Wrap create an error. CodeOf and PublicOf return what a caller may know of any error.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of a failure. Each protocol has one table that maps codes to its own
// (HTTP status, JSON-RPC code).
type Code string

// The codes. An error without a code counts as Internal.
const (
	Invalid         Code = "invalid"         // the input is malformed or not allowed; nothing was changed
	NotFound        Code = "not_found"       // no such thing, or none that this caller may see
	Conflict        Code = "conflict"        // current state forbids it, such as a taken name
	Unauthenticated Code = "unauthenticated" // no valid credential
	Forbidden       Code = "forbidden"       // a valid credential without the right
	TooLarge        Code = "too_large"       // over a size limit
	Limited         Code = "limited"         // over a rate or a quota; RetryAfter says when to try again
	Unavailable     Code = "unavailable"     // a part that is needed cannot work here or now
	Canceled        Code = "canceled"        // the caller went away or asked to stop
	Damaged         Code = "damaged"         // stored data cannot be read any more; a retry does not help
	Internal        Code = "internal"        // a bug or a failure here; the caller gets no details
)

// Error is a failure with a code and a message for the caller.
type Error struct {
	Code Code
	// Public is a short text for the caller that says what is wrong and what to do. It must
	// not contain secrets, host paths or another user's data.
	Public string
	// RetryAfter is how long to wait before another try, for Limited or Unavailable. Zero means
	// unknown.
	RetryAfter time.Duration
	// Field names the wrong field of the input, so that a form can mark it. It is empty if
	// no single field is known to be wrong.
	Field string
	// Err is the cause, for logs only.
	Err error
}

// In sets the name of the wrong field of the input, and returns the error.
func (e *Error) In(field string) *Error {
	e.Field = field
	return e
}

// Error returns the message with its cause, for logs.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Public + ": " + e.Err.Error()
	}
	return e.Public
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error whose message the caller may see.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Public: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with a message for the caller and a cause for the log.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Public: fmt.Sprintf(format, args...), Err: err}
}

// CodeOf returns the code of the first *Error in err's tree, Internal if there is none, and
// "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// FieldOf returns the wrong field of the input in the first *Error in err's tree, or "".
func FieldOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Field
	}
	return ""
}

// PublicOf returns the text about err that a caller may see: the message of the first
// *Error in its tree, or a general sentence.
func PublicOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Public
	}
	return "Something went wrong in the server. Its log has the details."
}
