package agent

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

// A command's output is kept though its reader has its turn only after the wait for the
// end of the output is over, and another process still holds the pipe open.
func TestOutputIsKeptThoughItsReaderIsLate(t *testing.T) {
	pipe := func(text string) *os.File {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(p[1]) })
		if _, err := unix.Write(p[1], []byte(text)); err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(p[0]), "output")
	}
	sh := &shell{stdout: pipe("out"), stderr: pipe("err")}
	r := &running{s: &server{}, sh: sh, stdout: &capture{half: 10}, stderr: &capture{half: 10}}
	sh.endOutput()
	r.readers.Add(2)
	r.follow(protocol.Stdout, sh.stdout, r.stdout)
	r.follow(protocol.Stderr, sh.stderr, r.stderr)
	if out, err := string(r.stdout.output().Head), string(r.stderr.output().Head); out != "out" || err != "err" {
		t.Errorf("stdout is %q, stderr %q", out, err)
	}
}
