package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
)

// hidden replaces a secret.
const hidden = "[redacted]"

// secrets lists the patterns of secrets in text, each with its replacement.
var secrets = []struct {
	form *regexp.Regexp
	put  string
}{
	// Satchel's API keys, also incomplete ones.
	{regexp.MustCompile(`satchel_[A-Za-z0-9_-]{32,}`), "satchel_" + hidden},
	// GitHub's tokens: installation, user, personal.
	{regexp.MustCompile(`\b(gh[a-z]_|github_pat_)[A-Za-z0-9_.-]{16,}`), "${1}" + hidden},
	// JSON web tokens.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)*`), hidden},
	// Credentials of an Authorization header. Shorter words are prose.
	{regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/-]{16,}=*`), "${1}${2}" + hidden},
	// The user and password of a URL.
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s]*@`), "${1}" + hidden + "@"},
	// Parameters of queries, forms and connection strings, and fields of JSON.
	{regexp.MustCompile(`(?i)\b(password|passwd|secret|client_secret|access_token|refresh_token|id_token|api_key|apikey|code_verifier|private_key)("?\s*[=:]\s*"?)[^\s"&,;}]+`), "${1}${2}" + hidden},
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), hidden},
}

// Redact replaces everything in s that looks like a secret.
func Redact(s string) string {
	if len(s) < 8 {
		return s
	}
	for _, x := range secrets {
		s = x.form.ReplaceAllString(s, x.put)
	}
	return s
}

// secretName reports whether an attribute or a header of this name holds a secret.
func secretName(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	switch name {
	case "authorization", "proxy_authorization", "cookie", "set_cookie", "credential", "credentials", "bearer", "api_key", "apikey", "private_key", "dsn":
		return true
	}
	for _, last := range []string{"password", "passwd", "secret", "token"} {
		if name == last || strings.HasSuffix(name, "_"+last) {
			return true
		}
	}
	return false
}

func redactAttr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	if a.Value.Kind() == slog.KindGroup {
		group := a.Value.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = redactAttr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	}
	if secretName(a.Key) {
		return slog.String(a.Key, hidden)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Redact(a.Value.String()))
	case slog.KindAny:
		a.Value = redactAny(a.Value.Any())
	}
	return a
}

// redactAny turns a value into text and redacts the text, because it cannot search the output
// that a handler would create from the value. It keeps nil and a *slog.Source.
func redactAny(v any) slog.Value {
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case *slog.Source:
		return slog.AnyValue(v)
	case error:
		return slog.StringValue(Redact(text(v.Error)))
	case fmt.Stringer:
		return slog.StringValue(Redact(text(v.String)))
	case []byte:
		return slog.StringValue(Redact(string(v)))
	case http.Header:
		clean := make(http.Header, len(v))
		for name, values := range v {
			if secretName(name) {
				values = []string{hidden}
			}
			clean[name] = values
		}
		return slog.StringValue(Redact(fmt.Sprint(map[string][]string(clean))))
	}
	return slog.StringValue(Redact(fmt.Sprintf("%+v", v)))
}

// text calls a method that returns a value as text. The method of a nil pointer may panic, and
// a log record must not end the server.
func text(spell func() string) (s string) {
	defer func() {
		if recover() != nil {
			s = "<nil>"
		}
	}()
	return spell()
}
