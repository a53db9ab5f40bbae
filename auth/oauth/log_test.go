package oauth_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
)

// TestNothingSecretIsLogged sends requests that succeed and that fail, and searches the log.
func TestNothingSecretIsLogged(t *testing.T) {
	var log bytes.Buffer
	m := newMemory()
	v := newVendor(t, http.NotFound)
	s := serve(t, m, withDocuments(v.client(t), &clock{t: now()}), func(o *oauth.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	secrets := []string{"satchel_ac_SECRET", "satchel_rt_SECRET", "verifier-SECRET-that-has-forty-three-characters", "state-SECRET", "basic-SECRET", m.tokens.Access.Reveal(), m.tokens.Refresh.Reveal()}
	forms := []url.Values{
		redeem("code", secrets[0], "code_verifier", secrets[2], "state", secrets[3], "client_secret", secrets[4]),
		refresh("refresh_token", secrets[1]),
		redeem("code", secrets[0], "client_id", "client_9"),
		redeem("code", secrets[0], "resource", "https://other.example/"),
		{"client_id": {"client_1"}, "token": {secrets[1]}},
	}
	for _, err := range []error{nil, errors.New("away"), fault.Wrap(auth.ErrInvalidGrant, fault.Invalid, "No."), fault.New(fault.Limited, "No."), fault.New(fault.Unavailable, "No.")} {
		m.err = err
		for _, f := range forms {
			post(t, s.Handler(), oauth.PathToken, f, "Authorization", "Basic Y2xpZW50XzE6YmFzaWMtU0VDUkVU")
			post(t, s.Handler(), oauth.PathRevoke, f)
		}
		for _, q := range []url.Values{request("state", secrets[3]), request("state", secrets[3], "client_id", documentID), request("state", secrets[3], "response_type", "x")} {
			r, err := s.Authorize(t.Context(), q)
			if err == nil {
				to, err := s.Approve(t.Context(), "u_1", r, "s_1", r.Scopes)
				secrets = append(secrets, strings.TrimPrefix(strings.Split(to+"&", "&")[1], "code="))
				fmt.Fprintln(&log, err)
			} else {
				fmt.Fprintln(&log, err) // callers log these errors
			}
		}
	}
	if !strings.Contains(log.String(), "invalid_grant") || !strings.Contains(log.String(), documentID) {
		t.Errorf("says too little:\n%s", log.String())
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, log.String())
		}
	}
}
