package transport

import (
	"errors"
	"net/netip"

	"satchel/internal/egress"
)

// CheckURL checks a URL by the default rules for users, or for the operator.
func CheckURL(raw string, trusted bool) error {
	_, err := policy{
		trusted: trusted, ports: []uint16{443},
		address: func(a netip.Addr) error { return egress.Check(a) },
	}.check(raw)
	return err
}

// ProblemOf returns the problem of the first *Error in err's tree; "" for nil, and Unknown
// if there is none.
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
