package authcheck

import (
	"net/http"
	"strings"
)

// bearerChallenge returns the parameters of the first Bearer challenge in WWW-Authenticate (RFC
// 9110 section 11.6.1), with names in lower case. Several challenges may share a line.
func bearerChallenge(h http.Header) (params map[string]string, ok bool) {
	for _, line := range h.Values("WWW-Authenticate") {
		for s := line; s != ""; {
			var scheme string
			scheme, s = token(strings.TrimLeft(s, " \t,"))
			if scheme == "" {
				break
			}
			var found map[string]string
			found, s = parameters(s)
			if strings.EqualFold(scheme, "Bearer") {
				return found, true
			}
		}
	}
	return nil, false
}

// parameters reads name=value pairs up to the next scheme, and returns the rest.
func parameters(s string) (map[string]string, string) {
	found := map[string]string{}
	for {
		s = strings.TrimLeft(s, " \t,")
		name, rest := token(s)
		rest = strings.TrimLeft(rest, " \t")
		if name == "" || !strings.HasPrefix(rest, "=") {
			return found, s
		}
		rest = strings.TrimLeft(rest[1:], " \t")
		var value string
		if strings.HasPrefix(rest, `"`) {
			value, rest = quoted(rest[1:])
		} else {
			value, rest = token(rest)
			rest = strings.TrimLeft(rest, "=") // the end of a token68
		}
		found[strings.ToLower(name)] = value
		s = rest
	}
}

// token reads a token (RFC 9110 section 5.6.2). It also accepts the characters that only a token68
// may have.
func token(s string) (tok, rest string) {
	i := 0
	for i < len(s) && s[i] > ' ' && s[i] < 0x7f && !strings.ContainsRune(`"(),;<=>?@[\]{}`, rune(s[i])) {
		i++
	}
	return s[:i], s[i:]
}

// quoted reads the text after an opening quote.
func quoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
