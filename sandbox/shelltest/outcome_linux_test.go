package shelltest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
)

// outcome is all that a script leaves behind.
type outcome struct {
	stdout, stderr []byte
	code           int
	signal         string
	tree           map[string]entry
}

// entry is one name of a tree; two equal entries are the same file to any
// program that does not look at times and inode numbers.
type entry struct {
	kind    byte // as in tar
	mode    int64
	link    string
	content string
}

// readTree reads the tar of a script's directory, by paths from there.
func readTree(t testing.TB, b []byte) map[string]entry {
	t.Helper()
	tree := map[string]entry{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return tree
		}
		if err != nil {
			t.Fatalf("reading a tree: %v", err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("reading %s of a tree: %v", h.Name, err)
		}
		tree[h.Name] = entry{kind: h.Typeflag, mode: h.Mode, link: h.Linkname, content: string(content)}
	}
}

// differences says where two outcomes are not the same to the last byte; none
// where they are.
func differences(got, want outcome) []string {
	var out []string
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	for _, s := range []struct {
		name      string
		got, want []byte
	}{{"stdout", got.stdout, want.stdout}, {"stderr", got.stderr, want.stderr}} {
		if !bytes.Equal(s.got, s.want) {
			say("%s is\n\t%s\nwant\n\t%s", s.name, excerpt(s.got, s.want), excerpt(s.want, s.got))
		}
	}
	if got.code != want.code {
		say("exit code %d, want %d", got.code, want.code)
	}
	if got.signal != want.signal {
		say("signal %q, want %q", got.signal, want.signal)
	}
	names := slices.Collect(maps.Keys(got.tree))
	for n := range want.tree {
		if _, ok := got.tree[n]; !ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		g, inGot := got.tree[n]
		w, inWant := want.tree[n]
		switch {
		case !inGot:
			say("%q is missing", n)
		case !inWant:
			say("%q is there and should not be", n)
		case g.content != w.content:
			say("%q holds\n\t%s\nwant\n\t%s", n, excerpt([]byte(g.content), []byte(w.content)), excerpt([]byte(w.content), []byte(g.content)))
		case g != w:
			say("%q is of kind %q, mode %o, link %q; want %q, %o, %q", n, g.kind, g.mode, g.link, w.kind, w.mode, w.link)
		}
	}
	return out
}

// excerpt quotes the part of a that begins a little before it differs from b.
func excerpt(a, b []byte) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from, to := max(0, i-100), min(len(a), i+300)
	return fmt.Sprintf("byte %d: %q", i, a[from:to])
}
