package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"satchel/internal/space"
)

func packet(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

func TestParseAdvertised(t *testing.T) {
	service := packet("# service=git-upload-pack\n") + "0000"
	for _, c := range []struct {
		name, in string
		want     Refs
		err      bool
	}{
		{"two branches and HEAD's", service + packet(one+" HEAD\x00multi_ack symref=HEAD:refs/heads/main object-format=sha1 agent=git/2.39\n") +
			packet(two+" refs/heads/a/b\n") + packet(one+" refs/heads/main\n") + packet(one+" refs/tags/v1\n") + packet(two+" refs/tags/v1^{}\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"a/b": two, "main": one}, Default: "main"}, false},
		{"an empty repository that sends its HEAD", service + packet(string(zeroCommit)+" capabilities^{}\x00symref=HEAD:refs/heads/trunk\n") + "0000",
			Refs{Default: "trunk", Empty: true}, false},
		{"an empty repository, old", service + "0000", Refs{Empty: true}, false},
		{"HEAD without symref, one branch there", service + packet(one+" HEAD\x00ofs-delta\n") + packet(one+" refs/heads/main\n") + packet(two+" refs/heads/x\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"main": one, "x": two}, Default: "main"}, false},
		{"HEAD without symref, two branches there", service + packet(one+" HEAD\x00\n") + packet(one+" refs/heads/main\n") + packet(one+" refs/heads/x\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"main": one, "x": one}}, false},
		{"HEAD without symref, three branches there", service + packet(one+" HEAD\x00\n") + packet(one+" refs/heads/a\n") + packet(one+" refs/heads/b\n") + packet(one+" refs/heads/c\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"a": one, "b": one, "c": one}}, false},
		{"a shallow repository", service + packet(one+" HEAD\x00symref=HEAD:refs/heads/main\n") + packet(one+" refs/heads/main\n") + packet("shallow "+one+"\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"main": one}, Default: "main", Shallow: true}, false},
		{"only pull requests", service + packet(one+" refs/pull/1/head\x00\n") + "0000", Refs{Empty: true}, false},
		{"names that git refuses", service + packet(one+" refs/heads/-x\x00symref=HEAD:refs/heads/--force\n") + packet(one+" refs/heads/a..b\n") +
			packet(one+" refs/heads/ok\n") + packet(one+" refs/heads/../../etc\n") + packet(one+" refs/heads/x y\n") + packet(one+" refs/heads/\x1b[2J\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"ok": one}}, false},
		{"a branch twice", service + packet(one+" refs/heads/main\x00\n") + packet(two+" refs/heads/main\n") + "0000",
			Refs{Heads: map[string]space.CommitID{"main": one}}, false},
		{"without the service line", packet(one+" refs/heads/main\x00\n") + "0000", Refs{Heads: map[string]space.CommitID{"main": one}}, false},
		{"HEAD's branch damaged on its way", service + packet(one+" HEAD\x00symref=HEAD:refs/heads/maim\n") + packet(one+" refs/heads/main\n") + "0000", Refs{}, true},
		{"a branch damaged on its way", service + packet(one+" HEAD\x00symref=HEAD:refs/heads/main\n") + packet(one+" refs/heads/maim\n") + "0000", Refs{}, true},
		{"SHA-256", service + packet(one+" HEAD\x00object-format=sha256\n") + "0000", Refs{}, true},
		{"protocol 2", service + packet("version 2\n") + packet("ls-refs\n") + "0000", Refs{}, true},
		{"no capabilities", service + packet(one+" refs/heads/main\n") + "0000", Refs{}, true},
		{"no flush", service + packet(one+" refs/heads/main\x00\n"), Refs{}, true},
		{"an invalid hash", service + packet("x"+one[1:]+" refs/heads/main\x00\n") + "0000", Refs{}, true},
		{"upper case", service + packet(strings.Repeat("A", 40)+" refs/heads/main\x00\n") + "0000", Refs{}, true},
		{"a line without a ref", service + packet(one+" refs/heads/main\x00\n") + packet("hello\n") + "0000", Refs{}, true},
		{"an invalid length", service + "zzzz", Refs{}, true},
		{"a length of 1", service + "0001", Refs{}, true},
		{"a length over the limit", service + "fff5", Refs{}, true},
		{"an ERR line", packet("ERR access denied\n"), Refs{}, true},
		{"an ERR line among the refs", service + packet(one+" refs/heads/main\x00\n") + packet("ERR too busy") + "0000", Refs{}, true},
		{"another service", packet("# service=git-receive-pack\n") + "0000", Refs{}, true},
		{"HTML", "<html>", Refs{}, true},
		{"nothing", "", Refs{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseAdvertised(strings.NewReader(c.in))
			if (err != nil) != c.err {
				t.Fatalf("got %v", err)
			}
			if c.err {
				return
			}
			if !maps.Equal(got.Heads, c.want.Heads) || got.Default != c.want.Default || got.Empty != c.want.Empty || got.Shallow != c.want.Shallow {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestParseListed(t *testing.T) {
	got, err := parseListed([]byte("ref: refs/heads/main\tHEAD\n" + one + "\tHEAD\n" + one + "\trefs/heads/main\n" + two + "\trefs/heads/-x\nnonsense\n"))
	if err != nil || got.Default != "main" || !maps.Equal(got.Heads, map[string]space.CommitID{"main": one}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := parseListed([]byte("ref: refs/heads/maim\tHEAD\n" + one + "\tHEAD\n" + one + "\trefs/heads/main\n")); err == nil {
		t.Errorf("a HEAD of another branch: got %+v", got)
	}
}

// FuzzParseAdvertised reads arbitrary answers of a server.
func FuzzParseAdvertised(f *testing.F) {
	service := packet("# service=git-upload-pack\n") + "0000"
	f.Add([]byte(service + packet(one+" HEAD\x00symref=HEAD:refs/heads/main\n") + packet(one+" refs/heads/main\n") + packet("shallow "+one+"\n") + "0000"))
	f.Add([]byte(service + packet(string(zeroCommit)+" capabilities^{}\x00symref=HEAD:refs/heads/trunk\n") + "0000"))
	f.Add([]byte(service + "0000"))
	f.Add([]byte(packet("ERR no\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		refs, err := parseAdvertised(bytes.NewReader(data))
		if err != nil {
			return
		}
		if refs.Empty != (len(refs.Heads) == 0) || refs.Default != "" && CheckBranch(refs.Default) != nil {
			t.Errorf("got %+v", refs)
		}
		for name, id := range refs.Heads {
			if CheckBranch(name) != nil || !id.Valid() || id == zeroCommit {
				t.Errorf("a branch is %q at %q", name, id)
			}
		}
		// Each branch must be in the stream as returned.
		for name, id := range refs.Heads {
			if !bytes.Contains(data, []byte(string(id)+" "+headsPrefix+name)) {
				t.Errorf("%s at %s is not in the stream", name, id)
			}
		}
	})
}

// endless is an advertisement that never ends.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	line := packet(one + " refs/tags/endless\n")
	if e.n == 0 {
		line = packet(one + " refs/tags/endless\x00\n")
	}
	e.n++
	if e.n > 100_000 {
		return 0, io.ErrClosedPipe
	}
	return copy(p, line), nil
}

func TestOnlyBranchesAreKept(t *testing.T) {
	if refs, err := parseAdvertised(&endless{}); !errors.Is(err, io.ErrClosedPipe) || len(refs.Heads) != 0 {
		t.Errorf("got %v", err)
	}
}
