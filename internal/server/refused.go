package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/telemetry"
	"satchel/web"
)

// Limits of what is kept about refused requests.
const (
	maxRefused     = 500     // pairs of a client and an address
	maxRefusedName = 80      // bytes of a client's name
	maxRefusedWhy  = 300     // bytes of a reason
	maxRefusedBody = 4 << 10 // bytes of an answer in which the reason is looked for
)

// refused keeps the last refused request of each client, by its name and address, so that the
// pages can say why a client fails to connect. The requests are lost when the server stops.
type refused struct {
	now func() time.Time
	by  *lru.Cache[refusedKey, web.RefusedRequest]
}

type refusedKey struct{ address, name string }

func newRefused(now func() time.Time) *refused {
	by, err := lru.New[refusedKey, web.RefusedRequest](maxRefused)
	if err != nil {
		panic(err) // the size is positive
	}
	return &refused{now, by}
}

// of returns the last refused requests from an address, or from everywhere if all is set, the
// newest first.
func (c *refused) of(address string, all bool) []web.RefusedRequest {
	var out []web.RefusedRequest
	for _, k := range c.by.Keys() {
		if !all && (address == "" || k.address != address) {
			continue
		}
		if r, ok := c.by.Peek(k); ok {
			out = append(out, r)
		}
	}
	slices.Reverse(out) // the oldest came first
	return out
}

// watch notes the requests that next refuses. address returns the sender's network address.
func (c *refused) watch(address func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &refusalRecorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		if rec.status < 400 || r.Method == http.MethodOptions {
			return
		}
		name := nameOf(r.UserAgent())
		c.by.Add(refusedKey{address(r), name}, web.RefusedRequest{
			Name: name, Asked: printable(r.Method, 20) + " " + r.URL.Path, Status: rec.status, Why: reasonIn(rec.body), Key: r.Header.Get("Authorization") != "", At: c.now(),
		})
	})
}

// nameOf returns the first product of a User-Agent header, such as claude-code/2.0.1.
func nameOf(agent string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(agent), " ")
	return printable(telemetry.Redact(first), maxRefusedName)
}

// reasonIn returns the reason in the JSON of an answer: the message of a JSON-RPC error or the
// description of an OAuth error.
func reasonIn(body []byte) string {
	var rpc struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &rpc) == nil {
		return printable(telemetry.Redact(rpc.Error.Message), maxRefusedWhy)
	}
	var oauth struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &oauth) == nil {
		why := oauth.Description
		if why == "" {
			why = oauth.Error
		}
		return printable(telemetry.Redact(why), maxRefusedWhy)
	}
	return ""
}

// printable returns the beginning of a text, without control characters. most is the maximum
// number of bytes.
func printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// refusalRecorder records the status of an answer, and the beginning of an error's text.
type refusalRecorder struct {
	http.ResponseWriter
	status int
	body   []byte
}

var _ http.Flusher = (*refusalRecorder)(nil)

func (r *refusalRecorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *refusalRecorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if room := maxRefusedBody - len(r.body); r.status >= 400 && room > 0 {
		r.body = append(r.body, b[:min(len(b), room)]...)
	}
	return r.ResponseWriter.Write(b)
}

// Flush sends what was written, if the connection can.
func (r *refusalRecorder) Flush() {
	_ = http.NewResponseController(r.ResponseWriter).Flush() // fails only if the connection cannot flush
}

// Unwrap gives http.ResponseController access to the connection.
func (r *refusalRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
