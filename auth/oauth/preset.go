package oauth

import "satchel/internal/fault"

// CheckRedirectURI reports whether a client that an admin makes may have a redirect
// URI, by the same rule as one that registers itself. The error is a
// fault.Invalid.
func CheckRedirectURI(uri string) error {
	if _, err := checkRedirect(uri); err != nil {
		return fault.Wrap(err, fault.Invalid, "The redirect URI cannot be used: %s.", err)
	}
	return nil
}
