package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxRequest bounds what a request of the socket says of itself, in bytes; an
// import's stream comes apart from it.
const maxRequest = 1 << 20

// statuses maps fault codes to HTTP's; what is not here is 500.
var statuses = map[fault.Code]int{
	fault.Invalid:     http.StatusBadRequest,
	fault.NotFound:    http.StatusNotFound,
	fault.Conflict:    http.StatusConflict,
	fault.TooLarge:    http.StatusRequestEntityTooLarge,
	fault.Forbidden:   http.StatusForbidden,
	fault.Unavailable: http.StatusServiceUnavailable,
}

// wireError is an error on the socket. The operator may see the whole of it.
type wireError struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// Listen opens the socket at path, which nobody but the owner of its directory
// can reach. Where a socket of a dead server is in the way it is replaced; the
// caller holds the data directory's lock, so no live one can be.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	addr, done, err := socketAddress(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.Listen("unix", addr)
	if err != nil {
		return nil, fmt.Errorf("open the command socket: %w", err)
	}
	// The address may be good for this call only; the server removes the file
	// by its real name.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// maxSocketPath is the longest path that a socket address holds on the systems
// that Satchel runs on (macOS has 104 bytes with the final NUL, Linux 108).
const maxSocketPath = 103

// socketAddress returns an address for path that fits into a socket address: on
// Linux a path that is too long is named through a descriptor of its directory.
// done must be called after the address was used.
func socketAddress(path string) (addr string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fault.New(fault.Unavailable, "The data directory's path is too long for a socket; choose one of less than %d characters.", maxSocketPath-20)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}

// Handler answers on the socket for s.
func Handler(s Service, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	handle := func(op string, f func(ctx context.Context, body json.RawMessage) (any, error)) {
		mux.HandleFunc("POST /"+op, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
			var v any
			if err == nil {
				v, err = f(r.Context(), body)
			}
			if err != nil {
				writeError(w, log, op, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	handle("info", func(ctx context.Context, _ json.RawMessage) (any, error) { return s.Info(ctx) })
	handle("users/add", func(ctx context.Context, b json.RawMessage) (any, error) {
		var in User
		if err := decode(b, &in); err != nil {
			return nil, err
		}
		return s.AddUser(ctx, in.Name, in.Admin)
	})
	handle("users/list", func(ctx context.Context, _ json.RawMessage) (any, error) { return s.Users(ctx) })
	handle("users/remove", func(ctx context.Context, b json.RawMessage) (any, error) {
		var name string
		if err := decode(b, &name); err != nil {
			return nil, err
		}
		return struct{}{}, s.RemoveUser(ctx, name)
	})
	handle("tokens/create", func(ctx context.Context, b json.RawMessage) (any, error) {
		var in TokenRequest
		if err := decode(b, &in); err != nil {
			return nil, err
		}
		return s.CreateToken(ctx, in)
	})
	handle("tokens/list", func(ctx context.Context, b json.RawMessage) (any, error) {
		var user string
		if err := decode(b, &user); err != nil {
			return nil, err
		}
		return s.Tokens(ctx, user)
	})
	handle("tokens/revoke", func(ctx context.Context, b json.RawMessage) (any, error) {
		var id space.GrantID
		if err := decode(b, &id); err != nil {
			return nil, err
		}
		return struct{}{}, s.RevokeToken(ctx, id)
	})
	handle("spaces/list", func(ctx context.Context, b json.RawMessage) (any, error) {
		var user string
		if err := decode(b, &user); err != nil {
			return nil, err
		}
		return s.Spaces(ctx, user)
	})
	mux.HandleFunc("POST /import", func(w http.ResponseWriter, r *http.Request) { serveImport(w, r, s, log) })
	return mux
}

func decode(b json.RawMessage, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fault.Wrap(err, fault.Invalid, "The server did not understand this satchel command; are both of the same version?")
	}
	return nil
}

func writeError(w http.ResponseWriter, log *slog.Logger, op string, err error) {
	code := fault.CodeOf(err)
	status, known := statuses[code]
	if !known {
		status = http.StatusInternalServerError
		log.Error("administrative command failed", "op", op, "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wireError{code, fault.PublicOf(err)})
}

// importLine is one line of the answer to an import: progress, and at the end
// a result or an error.
type importLine struct {
	Progress string        `json:"progress,omitempty"`
	Result   *ImportResult `json:"result,omitempty"`
	Error    *wireError    `json:"error,omitempty"`
}

func serveImport(w http.ResponseWriter, r *http.Request, s Service, log *slog.Logger) {
	rc := http.NewResponseController(w)
	// The answer's progress comes while the request's stream is read.
	_ = rc.EnableFullDuplex()
	enc := json.NewEncoder(w)
	q := r.URL.Query()
	req := ImportRequest{User: q.Get("user"), Kind: q.Get("kind"), Source: q.Get("source")}
	res, err := s.Import(r.Context(), req, r.Body, func(p string) {
		_ = enc.Encode(importLine{Progress: p})
		_ = rc.Flush()
	})
	line := importLine{Result: &res}
	if err != nil {
		if _, known := statuses[fault.CodeOf(err)]; !known {
			log.Error("import failed", "err", err)
		}
		line = importLine{Error: &wireError{fault.CodeOf(err), fault.PublicOf(err)}}
	}
	_ = enc.Encode(line)
}

// Dial returns the Service of the server that listens at path, and an error
// where none does.
func Dial(ctx context.Context, path string) (*Remote, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		addr, done, err := socketAddress(path)
		if err != nil {
			return nil, err
		}
		defer done()
		var d net.Dialer
		return d.DialContext(ctx, "unix", addr)
	}
	c, err := dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c.Close()
	return &Remote{http: &http.Client{Transport: &http.Transport{DialContext: dial, IdleConnTimeout: time.Second}}}, nil
}

// Remote is a Service that a running server performs.
type Remote struct{ http *http.Client }

var _ Service = (*Remote)(nil)

func (c *Remote) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://satchel/"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The running server did not answer.")
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		var e wireError
		if json.NewDecoder(res.Body).Decode(&e) != nil || e.Message == "" {
			e = wireError{fault.Unavailable, "The running server does not know this command; restart it with this version of satchel."}
		}
		return nil, fault.New(e.Code, "%s", e.Message)
	}
	return res, nil
}

func call[T any](ctx context.Context, c *Remote, op string, in any) (T, error) {
	var out T
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	res, err := c.post(ctx, op, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, fault.Wrap(err, fault.Unavailable, "The running server's answer could not be read.")
	}
	return out, nil
}

// Info asks the server.
func (c *Remote) Info(ctx context.Context) (Info, error) { return call[Info](ctx, c, "info", nil) }

// AddUser asks the server.
func (c *Remote) AddUser(ctx context.Context, name string, admin bool) (User, error) {
	return call[User](ctx, c, "users/add", User{Name: name, Admin: admin})
}

// Users asks the server.
func (c *Remote) Users(ctx context.Context) ([]User, error) {
	return call[[]User](ctx, c, "users/list", nil)
}

// RemoveUser asks the server.
func (c *Remote) RemoveUser(ctx context.Context, name string) error {
	_, err := call[struct{}](ctx, c, "users/remove", name)
	return err
}

// CreateToken asks the server.
func (c *Remote) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	return call[Token](ctx, c, "tokens/create", r)
}

// Tokens asks the server.
func (c *Remote) Tokens(ctx context.Context, user string) ([]TokenInfo, error) {
	return call[[]TokenInfo](ctx, c, "tokens/list", user)
}

// RevokeToken asks the server.
func (c *Remote) RevokeToken(ctx context.Context, id space.GrantID) error {
	_, err := call[struct{}](ctx, c, "tokens/revoke", id)
	return err
}

// Spaces asks the server.
func (c *Remote) Spaces(ctx context.Context, user string) ([]SpaceInfo, error) {
	return call[[]SpaceInfo](ctx, c, "spaces/list", user)
}

// Import streams to the server.
func (c *Remote) Import(ctx context.Context, r ImportRequest, stream io.Reader, progress func(string)) (ImportResult, error) {
	q := url.Values{"user": {r.User}, "kind": {r.Kind}, "source": {r.Source}}
	res, err := c.post(ctx, "import?"+q.Encode(), stream)
	if err != nil {
		return ImportResult{}, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l importLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			break
		}
		switch {
		case l.Error != nil:
			return ImportResult{}, fault.New(l.Error.Code, "%s", l.Error.Message)
		case l.Result != nil:
			return *l.Result, nil
		default:
			progress(l.Progress)
		}
	}
	return ImportResult{}, fault.Wrap(lines.Err(), fault.Unavailable, "The running server ended before the import did.")
}
