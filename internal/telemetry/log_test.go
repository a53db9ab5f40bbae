package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/internal/telemetry"
)

// Secrets of every form. Each contains a word that must not be in a log.
var canaries = []struct{ name, text, word string }{
	{"API key", "key satchel_CANARYxAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA was refused", "CANARY"},
	{"API key, cut", "satchel_CANARYxAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "CANARY"},
	{"bearer token", "Authorization: Bearer CANARYaaaaaaaaaaaa==", "CANARY"},
	{"bearer token in lower case", "authorization: bearer CANARYaaaaaaaaaaaa", "CANARY"},
	{"basic credentials", "Basic CANARYc2VjcmV0OnNlY3JldA==", "CANARY"},
	{"password in a URL", `dial "postgres://satchel:CANARY@db.example/satchel": refused`, "CANARY"},
	{"token in a git URL", "https://x-access-token:CANARY@github.com/a/b.git", "CANARY"},
	{"password with an at sign", "postgres://u:p@CANARY@host/db", "CANARY"},
	{"user alone", "https://CANARY@github.com/a/b", "CANARY"},
	{"GitHub token", "ghs_CANARYaaaaaaaaaaaaaaaaaaaa", "CANARY"},
	{"new GitHub token", "ghs_12345_eyJCANARY.aaaaaaaaaaa.bbbbbbbbb", "CANARY"},
	{"personal GitHub token", "github_pat_CANARYaaaaaaaaaaaaaaaaaaaa", "CANARY"},
	{"JWT", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJDQU5BUlki.CANARYsignature", "CANARY"},
	{"query", "GET /cb?state=1&access_token=CANARY&x=2", "CANARY"},
	{"form", "grant_type=refresh_token&refresh_token=CANARY", "CANARY"},
	{"JSON", `{"client_secret": "CANARY"}`, "CANARY"},
	{"connection string", "host=db user=u password=CANARY", "CANARY"},
	{"private key", "-----BEGIN RSA PRIVATE KEY-----\nCANARY\n-----END RSA PRIVATE KEY-----", "CANARY"},
	{"private key, cut", "-----BEGIN PRIVATE KEY-----\nCANARY", "CANARY"},
}

func TestRedact(t *testing.T) {
	for _, c := range canaries {
		if got := telemetry.Redact("before " + c.text + " after"); strings.Contains(got, c.word) || !strings.HasPrefix(got, "before ") {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	for _, s := range []string{
		"", "short", "GET /mcp 200", "https://satchel.example/mcp?x=a@b", "mail ann@x.example", "satchel_http_request_duration_seconds",
		"a bearer token is needed", "basic authentication", "max_tokens=5000", "the password is wrong", "git@github.com:a/b.git",
	} {
		if got := telemetry.Redact(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

type stringer struct{ s string }

func (s stringer) String() string { return s.s }

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("in", v.s)) }

// Attack: a secret reaches the log in any place of a record.
func TestNoSecretPassesTheHandler(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, c := range canaries {
			var out bytes.Buffer
			log, err := telemetry.NewLogger(telemetry.LogOptions{Writer: &out, Level: "debug", Format: format})
			if err != nil {
				t.Fatal(err)
			}
			u := &url.URL{Scheme: "https", User: url.UserPassword("u", "CANARY"), Host: "x.example"}
			log.Info(c.text)
			log.Info("m", "a", c.text)
			log.Info("m", slog.Group("g", "a", c.text))
			log.Info("m", "err", fmt.Errorf("wrapped: %w", errors.New(c.text)))
			log.Info("m", "s", stringer{c.text}, "v", valuer{c.text}, "b", []byte(c.text), "l", []string{c.text}, "m", map[string]string{"k": c.text}, "u", u)
			log.Info("m", "struct", struct{ Inner struct{ Text string } }{struct{ Text string }{c.text}})
			log.With("a", c.text).WithGroup("g").With("b", c.text).Info("m", "c", c.text)
			log.Log(telemetry.WithRequestID(t.Context(), "id"), slog.LevelWarn, "m", "a", c.text)
			if s := out.String(); strings.Contains(s, c.word) {
				t.Errorf("%s, %s: %s", c.name, format, s)
			} else if n := strings.Count(s, "\n"); n != 8 {
				t.Errorf("%s, %s: %d lines of 8", c.name, format, n)
			}
		}
	}
}

func TestSecretNames(t *testing.T) {
	for name, secret := range map[string]bool{
		"password": true, "db_password": true, "Authorization": true, "Set-Cookie": true, "cookie": true, "token": true, "accessToken": false,
		"access_token": true, "client-secret": true, "credential": true,
		"max_tokens": false, "tokens": false, "secretary": false, "key": false, "name": false,
	} {
		var out bytes.Buffer
		slog.New(telemetry.NewHandler(slog.NewTextHandler(&out, nil))).Info("m", name, "CANARY", slog.Group("g", name, 4711))
		if got := !strings.Contains(out.String(), "CANARY"); got != secret {
			t.Errorf("%s: %s", name, &out)
		}
		if got := !strings.Contains(out.String(), "4711"); got != secret {
			t.Errorf("%s in a group: %s", name, &out)
		}
	}
	var out bytes.Buffer
	slog.New(telemetry.NewHandler(slog.NewTextHandler(&out, nil))).Info("m", "headers", http.Header{"Cookie": {"session=CANARY"}, "Accept": {"text/html"}})
	if strings.Contains(out.String(), "CANARY") || !strings.Contains(out.String(), "text/html") {
		t.Errorf("headers: %s", &out)
	}
}

func TestLoggerKeepsWhatIsNoSecret(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(telemetry.LogOptions{Writer: &out, Level: "warn", Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("too little")
	var none *url.URL
	log.WarnContext(telemetry.WithRequestID(t.Context(), "r1"), "hello", "n", 5, "d", time.Second, "ok", true, "nil", nil, "err", errors.New("boom"), "nilurl", none)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	delete(got, "time")
	want := map[string]any{"level": "WARN", "msg": "hello", "request_id": "r1", "n": 5.0, "d": 1e9, "ok": true, "nil": nil, "err": "boom", "nilurl": "<nil>"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, o := range []telemetry.LogOptions{{Level: "loud"}, {Format: "xml"}} {
		if _, err := telemetry.NewLogger(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range canaries {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := telemetry.Redact(s)
		// A key is removed in any place.
		key := "satchel_" + strings.Repeat("K", 49)
		if strings.Contains(telemetry.Redact(s+key), strings.Repeat("K", 49)) {
			t.Fatalf("a key after %q is kept", s)
		}
		if len(s) < 8 && once != s {
			t.Fatalf("%q became %q", s, once)
		}
	})
}
