package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"

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
func Listen(path string) (*Socket, error) {
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
	// The address may be good for this call only; Close removes the file by its
	// real name.
	s := &Socket{UnixListener: l.(*net.UnixListener), path: path}
	s.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Socket is a listener whose file goes with it.
type Socket struct {
	*net.UnixListener
	path string
	once sync.Once
	err  error
}

// Close removes the socket's file and takes no connection any more. It may be
// called more than once.
func (s *Socket) Close() error {
	s.once.Do(func() { s.err = errors.Join(os.Remove(s.path), s.UnixListener.Close()) })
	return s.err
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
	e := errorOf(err, log, op)
	status, known := statuses[e.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e)
}

// errorOf is what the operator is told of an error, and logs what is not theirs
// to mend.
func errorOf(err error, log *slog.Logger, op string) wireError {
	e := wireError{fault.CodeOf(err), fault.PublicOf(err)}
	if e.Code == fault.Internal {
		log.Error("administrative command failed", "op", op, "err", err)
		e.Message = err.Error()
	}
	return e
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
		e := errorOf(err, log, "import")
		line = importLine{Error: &e}
	}
	_ = enc.Encode(line)
	_ = rc.Flush()
	// The client ends its stream when it has read the answer; were the
	// connection closed before, it might see that and not the answer.
	_, _ = io.Copy(io.Discard, r.Body)
}
