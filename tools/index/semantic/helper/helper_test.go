package helper

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/testenv"
)

// TestMain acts as the program in a process that was started as the program.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "--model" {
		play(os.Args[2], os.Args[4])
		return
	}
	goleak.VerifyTestMain(m)
}

// play sends its environment over the socket. It ends when a client asks it to die, or when its
// standard input closes.
func play(model, socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		os.Exit(3)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = os.WriteFile(filepath.Join(model, "ended"), nil, 0o600)
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		if line == "die\n" {
			os.Exit(4)
		}
		_, _ = io.WriteString(c, strings.Join(os.Environ(), " ")+"\n")
		_ = c.Close()
	}
}

// ask sends a request to the program once the program listens.
func ask(t *testing.T, socket, line string) (answer string) {
	t.Helper()
	testenv.WaitFor(t, "an answer of the program", func() bool {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		defer c.Close()
		_, _ = io.WriteString(c, line+"\n")
		answer, err = bufio.NewReader(c).ReadString('\n')
		return err == nil || line == "die"
	})
	return strings.TrimSpace(answer)
}

func TestTheProgramIsKeptRunning(t *testing.T) {
	t.Setenv("SATCHEL_SEARCH_EMBEDDINGS_KEY", "sk-secret")
	dir := t.TempDir()
	o := Options{Path: os.Args[0], Model: dir, Socket: filepath.Join(dir, "s"), RestartAfter: time.Millisecond}
	h := Start(o)
	if env := ask(t, o.Socket, "hello"); env != "" {
		t.Errorf("it is given %q", env)
	}
	ask(t, o.Socket, "die")
	ask(t, o.Socket, "hello") // the program has restarted
	h.Close()
	if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil {
		t.Errorf("it did not end by itself: %v", err)
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	h := Start(Options{Path: filepath.Join(dir, "none"), Model: dir, Socket: filepath.Join(dir, "s"), RestartAfter: time.Millisecond})
	h.Close()
}
