package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Kinds of failures, for errors.Is.
var (
	// ErrUnauthorized reports that the key is not valid or lacks a right.
	ErrUnauthorized = errors.New("client: the key is not valid, or lacks a right")
	// ErrLimited reports that the server wants the client to wait. Error.RetryAfter says how long.
	ErrLimited = errors.New("client: too many requests")
	// ErrSandbox reports that the sandbox of a command could not start, or ended early.
	ErrSandbox = errors.New("client: the sandbox failed")
	// ErrNetwork reports that the server was not reached, or that its answer cannot be used.
	ErrNetwork = errors.New("client: the server was not reached")
)

// The codes of errors. The server also has a few codes without a constant; see knownCodes.
const (
	CodeInvalid         = "invalid"
	CodeUnauthenticated = "unauthenticated"
	CodeForbidden       = "forbidden"
	CodeNotFound        = "not_found"
	CodeConflict        = "conflict"
	CodeTooLarge        = "too_large"
	CodeLimited         = "limited"
	CodeUnavailable     = "unavailable"
	CodeDamaged         = "damaged"
	CodeCanceled        = "canceled" // the context ended
	CodeInternal        = "internal"
	CodeNetwork         = "network" // see ErrNetwork; only this package uses the code
)

// Error is a request that failed.
type Error struct {
	Code    string
	Message string // what is wrong and what to do, for people
	Status  int    // the HTTP status; 0 without an answer
	// RetryAfter is how long the server wants the client to wait; 0 if it does not say.
	RetryAfter time.Duration
	// Sandbox reports that a command failed because of its sandbox.
	Sandbox bool
	// Err is the cause, or nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether the error is of a kind, such as ErrLimited.
func (e *Error) Is(kind error) bool {
	switch kind {
	case ErrUnauthorized:
		return e.Code == CodeUnauthenticated || e.Code == CodeForbidden
	case ErrLimited:
		return e.Code == CodeLimited
	case ErrSandbox:
		return e.Sandbox
	case ErrNetwork:
		return e.Code == CodeNetwork
	}
	return false
}

// maxRetryAfter limits Error.RetryAfter, whatever the server sends.
const maxRetryAfter = 24 * time.Hour

// knownCodes are the codes of the server. An answer with another code is not from Satchel.
var knownCodes = map[string]bool{
	CodeInvalid: true, CodeUnauthenticated: true, CodeForbidden: true, CodeNotFound: true, CodeConflict: true, CodeTooLarge: true, CodeLimited: true,
	CodeUnavailable: true, CodeDamaged: true, CodeCanceled: true, CodeInternal: true, "method_not_allowed": true, "unsupported_media_type": true, "request_timeout": true,
}

// refusal returns the error in an answer, or nil if the answer is not an error of Satchel's API.
func refusal(res *http.Response, data []byte) *Error {
	var body struct {
		Error Problem `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil || !knownCodes[body.Error.Code] {
		return nil
	}
	e := &Error{Code: body.Error.Code, Message: body.Error.Message, Status: res.StatusCode}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(min(s, int(maxRetryAfter/time.Second))) * time.Second
	}
	return e
}

// cause returns the innermost error. For a failed connection, it has the system's message.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
