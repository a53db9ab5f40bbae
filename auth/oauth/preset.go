package oauth

import "satchel/internal/fault"

// CheckRedirectURI returns a fault.Invalid if the redirect URI is not allowed for a client
// that an admin adds. The rule is the same as for clients that register themselves.
func CheckRedirectURI(uri string) error {
	if _, err := checkRedirect(uri); err != nil {
		return fault.Wrap(err, fault.Invalid, "The redirect URI cannot be used: %s.", err)
	}
	return nil
}
