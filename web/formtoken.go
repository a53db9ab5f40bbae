package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// formToken returns the token of a session's forms. Only somebody who knows the session's
// secret can compute it, and it does not reveal the secret.
func formToken(session string) []byte {
	mac := hmac.New(sha256.New, []byte(session))
	mac.Write([]byte("satchel web form"))
	return mac.Sum(nil)
}

// maskedToken returns the token for the forms of one answer: a random pad, followed by the
// token XORed with the pad. The token looks different in each answer, so the sizes of
// compressed answers do not reveal it (Gluck, Harris, Prado: "BREACH: Reviving the CRIME
// Attack", 2013, "Masking Secrets").
func maskedToken(session string) string {
	token := formToken(session)
	both := make([]byte, 2*len(token))
	pad, masked := both[:len(token)], both[len(token):]
	_, _ = rand.Read(pad) // never fails
	subtle.XORBytes(masked, pad, token)
	return base64.RawURLEncoding.EncodeToString(both)
}

// isToken reports whether text is a masked token of the session.
func isToken(text, session string) bool {
	token := formToken(session)
	both, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(both) != 2*len(token) {
		return false
	}
	pad, masked := both[:len(token)], both[len(token):]
	subtle.XORBytes(masked, masked, pad)
	return subtle.ConstantTimeCompare(masked, token) == 1
}

// CheckForm rejects a form without the token of the visitor's session.
func CheckForm(v *Visit) error {
	got := v.R.Header.Get("X-Satchel-Form")
	if got == "" {
		got = v.R.PostFormValue("form")
	}
	if !isToken(got, v.Secret) {
		return errStale
	}
	return nil
}
