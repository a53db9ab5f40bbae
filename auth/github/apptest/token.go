package apptest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// installationToken makes a token as GitHub makes them since 2026-04-27:
// ghs_APPID_JWT, some hundred characters.
func (s *Server) installationToken(t *token) string {
	head := b64([]byte(`{"alg":"HS256","typ":"JWT"}`))
	claims, err := json.Marshal(object{"iss": "apptest", "installation": t.installation.id, "repositories": t.repos, "exp": t.expires.Unix(), "jti": fresh("")})
	if err != nil {
		panic(err)
	}
	text := head + "." + b64(claims)
	mac := hmac.New(sha256.New, []byte("apptest"))
	mac.Write([]byte(text))
	return fmt.Sprintf("ghs_%d_%s.%s", t.app.id, text, b64(mac.Sum(nil)))
}

// clockSkew is how far ahead of GitHub's clock an app's may be.
const clockSkew = time.Minute

// appOf finds the app that signed a JWT, or says in GitHub's words what is wrong.
func (w *world) appOf(jwt string, now time.Time) (*app, string) {
	parts := strings.Split(jwt, ".")
	var head struct{ Alg string }
	var claims struct {
		Iss any
		Iat float64
		Exp float64
	}
	for i, v := range []any{&head, &claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(b, v) != nil {
			return nil, "A JSON web token could not be decoded"
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || head.Alg != "RS256" {
		return nil, "A JSON web token could not be decoded"
	}
	var found *app
	for _, a := range w.apps {
		id, isNumber := claims.Iss.(float64)
		if isNumber && int64(id) == a.id || claims.Iss == strconv.FormatInt(a.id, 10) || claims.Iss == a.clientID {
			found = a
		}
	}
	if found == nil {
		return nil, "Integration not found"
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&found.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return nil, "A JSON web token could not be decoded"
	}
	at := func(f float64) time.Time { return time.Unix(int64(f), 0) }
	switch {
	case claims.Exp == 0:
		return nil, "Missing 'expiration time' claim ('exp') in assertion"
	case !at(claims.Exp).After(now):
		return nil, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case at(claims.Exp).After(now.Add(10*time.Minute + clockSkew)):
		return nil, "'Expiration time' claim ('exp') is too far in the future"
	case at(claims.Iat).After(now.Add(clockSkew)):
		return nil, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	}
	return found, ""
}
