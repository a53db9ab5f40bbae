package sandbox

import (
	"slices"
	"testing"

	"satchel/sandbox/protocol"
)

// TestLimitsMet has the messages of programs that a limit stops: bash, coreutils, Python,
// Go, Node, git and Rust.
func TestLimitsMet(t *testing.T) {
	for _, c := range []struct {
		stderr string
		want   []Limit
	}{
		{"", nil},
		{"ls: cannot access 'x': No such file or directory", nil},
		{"bash: fork: retry: Resource temporarily unavailable", []Limit{LimitProcesses}},
		{"bash: fork: Resource temporarily unavailable", []Limit{LimitProcesses}},
		{"RuntimeError: can't start new thread", []Limit{LimitProcesses}},
		{"fork/exec /bin/ls: resource temporarily unavailable", []Limit{LimitProcesses}},
		{"Error: spawn ls EAGAIN", []Limit{LimitProcesses}},
		{"error: cannot fork() for pager", []Limit{LimitProcesses}},
		{"read: Resource temporarily unavailable", nil}, // of a file that has nothing to read yet
		{"head: error writing 'standard output': No space left on device", []Limit{LimitDisk}},
		{"Error: ENOSPC: no space left on device, write", []Limit{LimitDisk}},
		{"OSError: [Errno 24] Too many open files: 'x'", []Limit{LimitOpenFiles}},
		{"open x: too many open files", []Limit{LimitOpenFiles}},
		{"bash: line 1:    33 File size limit exceeded", []Limit{LimitFileSize}},
		{"OSError: [Errno 27] File too large", []Limit{LimitFileSize}},
		{"MemoryError", nil}, // memory ends the whole sandbox
	} {
		er := protocol.ExecResult{ExitCode: 1, Stderr: protocol.Output{Head: []byte(c.stderr)}}
		if got := limitsMet(er); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.stderr, got, c.want)
		}
		er.Stderr, er.Stdout = protocol.Output{}, protocol.Output{Tail: []byte(c.stderr)}
		if got := limitsMet(er); !slices.Equal(got, c.want) {
			t.Errorf("%q at the end of the output: %q, want %q", c.stderr, got, c.want)
		}
	}
	for _, er := range []protocol.ExecResult{{ExitCode: 153}, {ExitCode: 153, Signal: "SIGXFSZ"}} {
		if got := limitsMet(er); !slices.Equal(got, []Limit{LimitFileSize}) {
			t.Errorf("%+v: %q", er, got)
		}
	}
}

func TestParseFull(t *testing.T) {
	for out, want := range map[string][]Limit{
		"5120 495\n2048 3085508\n":      nil,
		"0 492\n2048 3085508\n":         {LimitDisk},
		"4625 0\n2048 3085508\n":        {LimitInodes},
		"5120 495\n0 3085507\n":         {LimitTmp},
		"5120 495\n900 0\n":             {LimitTmp},
		"0 0\n0 0\n":                    {LimitDisk, LimitInodes, LimitTmp},
		"":                              nil,
		"x":                             nil,
		"0 0 0":                         nil,
		"0 0 0 -1":                      nil,
		"0 0 0 99999999999999999999999": nil,
		"0 0 0 0 0":                     nil,
	} {
		if got := parseFull(out); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}
