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

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/service"
)

// maxRequest bounds the JSON body of a request, in bytes. It does not apply to the streams of
// imports and uploads.
const maxRequest = 1 << 20

// statuses maps fault codes to HTTP status codes. All other codes become 500.
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
	Field   string     `json:"field,omitempty"` // the field of the input that is wrong
}

// Listen opens the socket at path. Only the owner of its directory can reach the socket.
// Listen replaces the socket of a dead server. No live server can use this path, because the
// caller holds the data directory's lock.
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
	// The address may be valid only until done is called, so Close removes the file by its
	// real name.
	s := &Socket{UnixListener: l.(*net.UnixListener), path: path}
	s.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Socket is a listener that removes its file when it closes.
type Socket struct {
	*net.UnixListener
	path string
	once sync.Once
	err  error
}

// Close removes the socket's file and accepts no more connections. It may be called more
// than once.
func (s *Socket) Close() error {
	s.once.Do(func() { s.err = errors.Join(os.Remove(s.path), s.UnixListener.Close()) })
	return s.err
}

// maxSocketPath is the longest path that a socket address holds on the systems
// that Satchel runs on (macOS has 104 bytes with the final NUL, Linux 108).
const maxSocketPath = 103

// socketAddress returns a name for path that fits into a socket address. On Linux, it names a
// path that is too long through a descriptor of its directory. The caller must call done after
// it has used the name.
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

// Handler answers the requests on the socket with s.
func Handler(s Service, log *slog.Logger) http.Handler {
	m := &socketMux{ServeMux: http.NewServeMux(), log: log}
	handle(m, "info", func(ctx context.Context, _ struct{}) (any, error) { return s.Info(ctx) })
	handleOperations(m, s)
	m.HandleFunc("POST /import", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		in := service.ImportSpaceInput{Space: service.SpaceRef{User: q.Get("user"), Name: q.Get("space")}, Kind: q.Get("kind"), Source: q.Get("source"), Stream: r.Body}
		answerLines(w, log, "import", func(progress func(string)) (service.ImportResult, error) {
			return s.Import(service.WithProgress(r.Context(), progress), in)
		})
		// The client ends its stream when it has read the answer. If the server closed the
		// connection earlier, the client might not see the answer.
		_, _ = io.Copy(io.Discard, r.Body)
	})
	m.HandleFunc("POST /import-memory", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		in := service.ImportMemoryInput{Space: service.SpaceRef{User: q.Get("user"), Name: q.Get("space")}, Name: q.Get("name"), Format: q.Get("format"), DryRun: q.Get("dry_run") == "true", Stream: r.Body}
		answerLines(w, log, "import-memory", func(progress func(string)) (service.ImportedMemory, error) {
			return s.ImportMemory(service.WithProgress(r.Context(), progress), in)
		})
		_, _ = io.Copy(io.Discard, r.Body) // so that the client reads the answer; see the comment at /import
	})
	m.HandleFunc("POST /upload-to-source", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		in := service.UploadToSourceInput{ID: q.Get("id"), Name: q.Get("name"), Stream: r.Body}
		if create := q.Get("create"); create != "" {
			if err := decode(json.RawMessage(create), &in.Create); err != nil {
				writeError(w, log, "upload-to-source", err)
				return
			}
		}
		answerLines(w, log, "upload-to-source", func(progress func(string)) (service.UploadedToSource, error) {
			return s.UploadToSource(service.WithProgress(r.Context(), progress), in)
		})
		_, _ = io.Copy(io.Discard, r.Body) // so that the client reads the answer; see the comment at /import
	})
	return m
}

// socketMux routes the requests on the socket.
type socketMux struct {
	*http.ServeMux
	log *slog.Logger
}

// handle registers an operation whose request and answer are one JSON value each.
func handle[In any](m *socketMux, op string, f func(ctx context.Context, in In) (any, error)) {
	m.HandleFunc("POST /"+op, func(w http.ResponseWriter, r *http.Request) {
		in, err := read[In](w, r)
		var v any
		if err == nil {
			v, err = f(r.Context(), in)
		}
		if err != nil {
			writeError(w, m.log, op, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	})
}

// handleLong is like handle, for long work. The answer consists of lines. All lines but the
// last report progress.
func handleLong[In, Out any](m *socketMux, op string, f func(ctx context.Context, in In, progress func(string)) (Out, error)) {
	m.HandleFunc("POST /"+op, func(w http.ResponseWriter, r *http.Request) {
		in, err := read[In](w, r)
		if err != nil {
			writeError(w, m.log, op, err)
			return
		}
		answerLines(w, m.log, op, func(progress func(string)) (Out, error) { return f(r.Context(), in, progress) })
	})
}

func read[In any](w http.ResponseWriter, r *http.Request) (in In, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return in, err
	}
	return in, decode(body, &in)
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

// errorOf converts an error for the operator. It logs errors that the operator cannot fix.
func errorOf(err error, log *slog.Logger, op string) wireError {
	e := wireError{fault.CodeOf(err), fault.PublicOf(err), fault.FieldOf(err)}
	if database.IsDamaged(err) {
		log.Error("the database is damaged", "op", op, "err", err)
		e.Code, e.Message = fault.Unavailable, "The database is damaged. satchel doctor says what to do."
	} else if e.Code == fault.Internal {
		log.Error("administrative command failed", "op", op, "err", err)
		e.Message = err.Error()
	}
	return e
}

// answerLine is one line of a long answer: progress, and at the end a result or
// an error.
type answerLine[Out any] struct {
	Progress string     `json:"progress,omitempty"`
	Result   *Out       `json:"result,omitempty"`
	Error    *wireError `json:"error,omitempty"`
}

// answerLines calls f, which does long work, and answers with lines; see answerLine.
func answerLines[Out any](w http.ResponseWriter, log *slog.Logger, op string, f func(progress func(string)) (Out, error)) {
	rc := http.NewResponseController(w)
	// Progress is written while the request's stream is still being read.
	_ = rc.EnableFullDuplex()
	var mu sync.Mutex
	write := func(l answerLine[Out]) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(l)
		_ = rc.Flush()
	}
	res, err := f(func(p string) { write(answerLine[Out]{Progress: p}) })
	line := answerLine[Out]{Result: &res}
	if err != nil {
		e := errorOf(err, log, op)
		line = answerLine[Out]{Error: &e}
	}
	write(line)
}
