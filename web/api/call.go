package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/jsontext"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// call is a request that is being answered.
type call struct {
	s   *Server
	w   http.ResponseWriter
	r   *http.Request
	p   auth.Principal
	end func()
	// library is the snapshot of the library that the request sees, or nil before
	// openLibrary. seen is the same snapshot for tools.
	library *service.Library
	seen    *tools.Seen
}

// actor returns the caller as the actor of operations.
func (c *call) actor() service.Actor { return service.Client(c.p, "api") }

// ifMatch returns the etag in the header If-Match, which can be quoted or not. It returns "" if
// every version matches.
func (c *call) ifMatch() (space.BlobID, error) {
	value := strings.TrimSpace(strings.Join(c.r.Header.Values("If-Match"), ","))
	etag := strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)
	switch {
	case value == "" || value == "*":
		return "", nil
	case etag == "" || strings.ContainsAny(etag, `", `):
		return "", fault.New(fault.Invalid, "If-Match must have one etag, such as the one in the list of facts.")
	}
	return space.BlobID(etag), nil
}

// challenge sets the header WWW-Authenticate, which says where to get a token (RFC 6750, RFC 9728).
func (c *call) challenge(err error) {
	ch := auth.ChallengeOf(err)
	ch.Scope = c.s.o.ScopeNames([]space.Scope{space.ScopeRead, space.ScopeWrite})
	if c.s.o.ResourceMetadataURL != nil {
		ch.ResourceMetadata = c.s.o.ResourceMetadataURL(c.r)
	}
	c.w.Header().Set("WWW-Authenticate", ch.Header())
}

// status returns the HTTP status of a fault code.
func status(code fault.Code) int {
	switch code {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Limited:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Canceled:
		return 499 // what nginx logs when the caller is gone
	}
	return http.StatusInternalServerError
}

// errorView is the body of every error.
type errorView struct {
	Error      errorDetail `json:"error"`
	Message    string      `json:"message" doc:"The same text as error.message."`
	StatusCode int         `json:"statusCode" doc:"The HTTP status." api:"minimum=400,maximum=599"`
}

type errorDetail struct {
	Code    string `json:"code" api:"enum=invalid|not_found|conflict|unauthenticated|forbidden|too_large|limited|unavailable|damaged|canceled|internal|method_not_allowed|unsupported_media_type|request_timeout"`
	Message string `json:"message" doc:"What is wrong and what to do, for people."`
}

func detailOf(err error) *errorDetail {
	return &errorDetail{string(fault.CodeOf(err)), fault.PublicOf(err)}
}

var (
	// errMedia is the error for a body of an unsupported media type.
	errMedia = errors.New("unsupported media type")
	// errLate is the error for a body that did not arrive in time.
	errLate = errors.New("the body did not arrive in time")
)

func (c *call) fail(err error) {
	code := fault.CodeOf(err)
	st := status(code)
	name := string(code)
	if errors.Is(err, errMedia) {
		st, name = http.StatusUnsupportedMediaType, "unsupported_media_type"
	}
	if errors.Is(err, errLate) {
		st, name = http.StatusRequestTimeout, "request_timeout"
	}
	if st >= 500 && (c.r.Context().Err() == nil || !errors.Is(err, context.Canceled)) {
		c.s.o.Logger.ErrorContext(c.r.Context(), "a request failed", "path", c.r.Pattern, "err", err)
	}
	if code == fault.Unauthenticated || auth.ErrorCode(err) != "" {
		c.challenge(err)
	}
	var f *fault.Error
	if errors.As(err, &f) && f.RetryAfter > 0 || code == fault.Limited {
		wait := time.Second
		if f != nil {
			wait = max(wait, f.RetryAfter)
		}
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	c.refuse(st, name, fault.PublicOf(err))
}

func (c *call) refuse(status int, code, message string) {
	_ = c.answer(status, errorView{errorDetail{code, message}, message, status}) // cannot fail
}

// answer sends a value as JSON.
func (c *call) answer(status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the headers keep browsers from taking JSON for HTML
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	c.write(status, b.Bytes())
	return nil
}

func (c *call) write(status int, body []byte) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body) // fails only if the caller is gone
	}
}

// session is the caller's name for a sandbox. Clients send it with every call, and the
// answer repeats it. Only shell uses a sandbox.
type session struct {
	SessionID string `json:"sessionId" doc:"Names a sandbox of shell. Every answer repeats it. Without it, the name is default." api:"maxLength=$session,pattern=^[A-Za-z0-9._:-]*$"`
}

// named returns the session of an answer, which always has a name.
func (s session) named() session {
	return session{cmp.Or(s.SessionID, service.DefaultSession)}
}

// maxSessionID limits the name of a session, in characters.
const maxSessionID = 128

func (s session) check() error {
	if len(s.SessionID) > maxSessionID || strings.ContainsFunc(s.SessionID, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r))
	}) {
		return fault.New(fault.Invalid, "A sessionId has at most %d letters, digits and any of . _ : and -.", maxSessionID)
	}
	return nil
}

// body is the decoded body of a call.
type body interface{ check() error }

// decode reads the body into v. Unknown fields are an error.
func (c *call) decode(v any) error {
	t, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if cs := params["charset"]; err != nil || t != "application/json" || cs != "" && !strings.EqualFold(cs, "utf-8") {
		return fault.Wrap(errMedia, fault.Invalid, "The body must be JSON in UTF-8: send the header Content-Type: application/json.")
	}
	if enc := c.r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.Wrap(errMedia, fault.Invalid, "The body must not be compressed.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.s.o.Limits.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fault.Wrap(err, fault.TooLarge, "The request is larger than the %d bytes that are allowed.", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Wrap(errLate, fault.Invalid, "The request did not arrive in time. Send it again.")
	case err != nil:
		return fault.Wrap(err, fault.Invalid, "The request could not be read completely.")
	case !utf8.Valid(body):
		return fault.New(fault.Invalid, "The body is not valid UTF-8.")
	case !jsontext.Paired(body):
		return fault.New(fault.Invalid, jsontext.Unpaired)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault.Wrap(err, fault.Invalid, "The body does not have the form of this request (%s). GET /api/openapi.json describes it.", jsonProblem(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "The body has more than one JSON value.")
	}
	return nil
}

// jsonProblem says what is wrong with a body, without the names of Go types.
func jsonProblem(err error) string {
	var t *json.UnmarshalTypeError
	var s *json.SyntaxError
	switch {
	case errors.As(err, &t) && t.Field == "":
		return "it must be an object"
	case errors.As(err, &t):
		// Only the last name is shown, because the path to a field contains Go types.
		return fmt.Sprintf("%s must not be a %s", quoted(t.Field[strings.LastIndexByte(t.Field, '.')+1:]), t.Value)
	case errors.As(err, &s):
		return fmt.Sprintf("it breaks off or has a wrong character at byte %d", s.Offset)
	case errors.Is(err, io.EOF):
		return "it is empty"
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "it has the unknown field " + short(name)
	}
	return "it breaks off"
}

// quoted shortens and quotes a caller's text, for a message to the caller.
func quoted(s string) string { return strconv.Quote(short(s)) }

func short(s string) string {
	const most = 100
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
