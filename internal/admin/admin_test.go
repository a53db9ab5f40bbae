package admin_test

import (
	"archive/tar"
	"bytes"
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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over returns s as a server's socket offers it.
func over(t *testing.T, s admin.Service, log *slog.Logger) *admin.Remote {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin.sock")
	serveOn(t, path, admin.Handler(s, log))
	return dial(t, path)
}

func serveOn(t *testing.T, path string, h http.Handler) {
	t.Helper()
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); l.Close(); <-done })
}

func dial(t *testing.T, path string) *admin.Remote {
	t.Helper()
	r, err := admin.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// newLocal is a Service on a data directory of its own.
func newLocal(t *testing.T) *admin.Local {
	t.Helper()
	return &admin.Local{Service: servicetest.New(t, time.Now).Service, Running: admin.Info{Version: "v1", URL: "http://127.0.0.1:1/mcp"}}
}

// addUser adds a person.
func addUser(t *testing.T, s admin.Service, name string, isAdmin bool) {
	t.Helper()
	if _, err := admin.Do(t.Context(), s, (*service.Service).AddUser, service.AddUserInput{Name: name, Admin: isAdmin}); err != nil {
		t.Fatal(err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// tarball is what `space import DIRECTORY` sends.
func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644}),
			second(io.WriteString(w, files[i+1]))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func second(_ int, err error) error { return err }

func gitBundle(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte("# Page\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"commit", "-q", "-m", "The first page"},
		{"bundle", "create", "-q", "b", "HEAD"}} {
		if out, err := testenv.Git(t, dir, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ids is everything in an answer that differs between two runs.
var ids = regexp.MustCompile(`[a-z]{1,3}_[a-z2-7]{20,}|satchel_[\w-]{32,}|\b[0-9a-f]{40}\b|\bconflict-[0-9a-f]{10}\b|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)|"/[^"]*/`)

// TestBothWaysAnswerAlike performs every operation directly and over the
// socket: answers and errors are the same.
func TestBothWaysAnswerAlike(t *testing.T) {
	bundle := gitBundle(t)
	perform := func(t *testing.T, s admin.Service) (transcript []string) {
		ctx := t.Context()
		say := func(op string, v any, err error) {
			t.Helper()
			if err != nil {
				v = fmt.Sprintf("%s: %s", fault.CodeOf(err), fault.PublicOf(err))
			}
			b, jerr := json.Marshal(v)
			if jerr != nil {
				t.Fatal(jerr)
			}
			transcript = append(transcript, op+" "+ids.ReplaceAllString(string(b), "#"))
		}
		imports := func(op, user, kind string, stream io.Reader) {
			t.Helper()
			res, err := s.Import(ctx, service.ImportSpaceInput{Space: service.SpaceRef{User: user}, Kind: kind, Source: "docs", Stream: stream})
			say(op, res, err)
		}

		info, err := s.Info(ctx)
		say("info", info, err)
		add := func(op, name string) {
			u, err := admin.Do(ctx, s, (*service.Service).AddUser, service.AddUserInput{Name: name})
			say(op, u, err)
		}
		add("add", "ann")
		add("add again", "ann")
		add("add another", "ben")
		users, err := admin.Do(ctx, s, (*service.Service).ListUsers, service.None{})
		say("users", users, err)
		_, err = s.Perform(ctx, "Nonsense", nil)
		say("an unknown operation", nil, err)

		imports("directory", "ann", service.ImportTar, bytes.NewReader(tarball(t, "a.md", "one", "b/c.md", "two", ".git/config", "no", "../up", "no")))
		imports("the same with changes", "ann", service.ImportTar, bytes.NewReader(tarball(t, "a.md", "changed")))
		imports("repository", "ben", service.ImportBundle, bytes.NewReader(bundle))
		imports("another kind", "ben", "zip", strings.NewReader("PK"))
		imports("for nobody", "nobody", service.ImportTar, bytes.NewReader(tarball(t, "a", "b")))
		imports("no bundle", "ann", service.ImportBundle, strings.NewReader("hello"))
		imports("no tar", "ann", service.ImportTar, strings.NewReader(strings.Repeat("hello", 1000)))
		imports("cut off", "ann", service.ImportTar, bytes.NewReader(tarball(t, "x.md", strings.Repeat("x", 9000))[:5000]))
		imports("a source that fails", "ann", service.ImportTar,
			io.MultiReader(bytes.NewReader(tarball(t, "x.md", "x")[:512]), iotest.ErrReader(fault.New(fault.Unavailable, "The disk is on fire."))))

		return transcript
	}

	direct := perform(t, newLocal(t))
	asked := perform(t, over(t, newLocal(t), quiet()))
	for i := range direct {
		if direct[i] != asked[i] {
			t.Errorf("directly        %s\nover the socket %s", direct[i], asked[i])
		}
	}
	for op, want := range map[string]string{
		"a source that fails": `"unavailable: The disk is on fire."`,
		"add again":           `"conflict: A user named \"ann\" already exists."`,
		"another kind":        `"invalid: \"zip\" is not a kind of import."`,
	} {
		if !slices.Contains(direct, op+" "+want) {
			t.Errorf("%s does not answer %s:\n%s", op, want, strings.Join(direct, "\n"))
		}
	}
}

// service answers with what a test wants.
type fakeService struct {
	admin.Service
	err      error
	onImport func(ctx context.Context, stream io.Reader, progress func(string)) (service.ImportResult, error)
	onMemory func(in service.ImportMemoryInput) (service.ImportedMemory, error)
}

func (s fakeService) ImportMemory(_ context.Context, in service.ImportMemoryInput) (service.ImportedMemory, error) {
	return s.onMemory(in)
}

func (s fakeService) Perform(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, s.err
}

func (s fakeService) Import(ctx context.Context, in service.ImportSpaceInput) (service.ImportResult, error) {
	return s.onImport(ctx, in.Stream, service.Progress(ctx))
}

func TestErrorsKeepTheirCodeAndWords(t *testing.T) {
	for _, code := range []fault.Code{fault.Invalid, fault.NotFound, fault.Conflict, fault.Unauthenticated, fault.Forbidden,
		fault.TooLarge, fault.Limited, fault.Unavailable, fault.Canceled} {
		_, err := over(t, fakeService{err: fmt.Errorf("inside: %w", fault.New(code, "Do this, 100%%."))}, quiet()).Perform(t.Context(), "ListUsers", nil)
		if fault.CodeOf(err) != code || fault.PublicOf(err) != "Do this, 100%." {
			t.Errorf("%s arrives as %s: %v", code, fault.CodeOf(err), err)
		}
	}
	// Who reaches the socket owns the server: they may know.
	var log bytes.Buffer
	_, err := over(t, fakeService{err: errors.New("disk on fire")}, slog.New(slog.NewTextHandler(&log, nil))).Perform(t.Context(), "ListUsers", nil)
	if fault.CodeOf(err) != fault.Internal || fault.PublicOf(err) != "disk on fire" || !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("got %v, logged %s", err, log.String())
	}
}

// Progress arrives while the stream is still being sent.
func TestAnImportTalksBothWays(t *testing.T) {
	r := over(t, fakeService{onImport: func(_ context.Context, stream io.Reader, progress func(string)) (service.ImportResult, error) {
		b := make([]byte, 3)
		for range 3 {
			if _, err := io.ReadFull(stream, b); err != nil {
				return service.ImportResult{}, err
			}
			progress("got " + string(b))
		}
		return service.ImportResult{Files: 3}, nil
	}}, quiet())
	stream, w := io.Pipe()
	heard := make(chan string)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer w.Close()
		for _, part := range []string{"one", "two", "six"} {
			io.WriteString(w, part)
			if got := <-heard; got != "got "+part {
				t.Errorf("heard %q", got)
			}
		}
	})
	res, err := r.Import(service.WithProgress(t.Context(), func(p string) { heard <- p }), service.ImportSpaceInput{Stream: stream})
	wg.Wait()
	if err != nil || res.Files != 3 {
		t.Errorf("%+v, %v", res, err)
	}
}

// An import of memory arrives with its options and its whole stream.
func TestAnImportOfMemory(t *testing.T) {
	want := service.ImportMemoryInput{Space: service.SpaceRef{User: "ann", Name: "home"}, Name: "a b/CLAUDE.md", Format: "instructions", DryRun: true}
	r := over(t, fakeService{onMemory: func(in service.ImportMemoryInput) (service.ImportedMemory, error) {
		b, err := io.ReadAll(in.Stream)
		if in.Stream = nil; err != nil || string(b) != "text" || in != want {
			t.Errorf("%+v with %q, %v", in, b, err)
		}
		return service.ImportedMemory{Format: in.Format}, nil
	}}, quiet())
	in := want
	in.Stream = strings.NewReader("text")
	if out, err := r.ImportMemory(t.Context(), in); err != nil || out.Format != "instructions" {
		t.Errorf("%+v, %v", out, err)
	}
}

// A server that does not read the stream to its end is heard all the same,
// however much there is.
func TestAnImportThatIsRefusedAtOnce(t *testing.T) {
	r := over(t, fakeService{onImport: func(context.Context, io.Reader, func(string)) (service.ImportResult, error) {
		return service.ImportResult{}, fault.New(fault.NotFound, "Nobody of this name.")
	}}, quiet())
	endless := iotest.TimeoutReader(zeros{}) // never ends; the second read fails
	for _, stream := range []io.Reader{io.LimitReader(zeros{}, 1<<30), endless} {
		_, err := r.Import(t.Context(), service.ImportSpaceInput{Stream: stream})
		if stream != endless && (fault.CodeOf(err) != fault.NotFound || fault.PublicOf(err) != "Nobody of this name.") || err == nil {
			t.Errorf("got %v", err)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestAnInterruptedImport(t *testing.T) {
	ended := make(chan error, 1)
	r := over(t, fakeService{onImport: func(ctx context.Context, stream io.Reader, progress func(string)) (service.ImportResult, error) {
		progress("begun")
		_, err := io.Copy(io.Discard, stream)
		ended <- err
		return service.ImportResult{}, err
	}}, quiet())
	ctx, interrupt := context.WithCancel(t.Context())
	stream, w := io.Pipe()
	defer w.Close()
	_, err := r.Import(service.WithProgress(ctx, func(string) { interrupt() }), service.ImportSpaceInput{Stream: stream})
	if err == nil {
		t.Error("no error")
	}
	if err := <-ended; err == nil {
		t.Error("the server takes what was cut off for the whole")
	}
}

func TestTheSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "admin.sock")
	if _, err := admin.Dial(t.Context(), path); err == nil {
		t.Error("a socket that is not there answers")
	}
	// What a killed server left is replaced.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	if _, err := admin.Dial(t.Context(), path); err == nil {
		t.Error("a dead socket answers")
	}
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket outlives its server")
	}
}

// A data directory may lie deeper than a socket's address can say.
func TestALongPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux names a socket through a directory's descriptor")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "admin.sock")
	serveOn(t, path, admin.Handler(newLocal(t), quiet()))
	if info, err := dial(t, path).Info(t.Context()); err != nil || info.Version != "v1" {
		t.Errorf("%+v, %v", info, err)
	}
}

// A server of another version says so, whatever of the two is older.
func TestAServerOfAnotherVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	serveOn(t, path, http.NotFoundHandler())
	_, err := dial(t, path).Info(t.Context())
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "restart it with this version") {
		t.Errorf("got %v", err)
	}
	_, err = dial(t, path).Import(t.Context(), service.ImportSpaceInput{Stream: strings.NewReader("x")})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "restart it with this version") {
		t.Errorf("import: %v", err)
	}
}

// A server that dies in the middle is no success.
func TestAServerThatDies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	serveOn(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"progress":"half"}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	_, err := dial(t, path).Import(t.Context(), service.ImportSpaceInput{Stream: strings.NewReader("")})
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

// Malformed requests of the socket are refused and change nothing.
func TestMalformedRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	serveOn(t, path, admin.Handler(newLocal(t), quiet()))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	for op, body := range map[string]string{"info": "{", "operations": "5"} {
		res, err := client.Post("http://satchel/"+op, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s %q: %s", op, body, res.Status)
		}
	}
}

// A directory's name cannot forge what a commit says of itself.
func TestTheMessageOfAnImport(t *testing.T) {
	l := newLocal(t)
	addUser(t, l, "ann", true)
	for source, want := range map[string]string{
		"docs":                     "Import docs",
		"x\nSatchel-Client: y":     "Import x Satchel-Client: y",
		"x\r\n\r\x1b[31m\u202ered": "Import x    [31m red",
		strings.Repeat("é", 500):   "Import " + strings.Repeat("é", 200) + "…",
	} {
		res, err := l.Import(t.Context(), service.ImportSpaceInput{Kind: service.ImportTar, Source: source, Stream: bytes.NewReader(tarball(t, fmt.Sprintf("%d.md", len(source)), "x"))})
		if err != nil {
			t.Fatal(err)
		}
		spaces, err := admin.Do(t.Context(), l, (*service.Service).ListSpaces, service.ListSpacesInput{User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := testenv.Git(t, spaces[0].Repository, "log", "-1", "--format=%s", string(res.Commit)).Output()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: %q, %v", source, out, err)
		}
	}
}
