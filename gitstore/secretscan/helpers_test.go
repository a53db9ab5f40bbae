package secretscan

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// The alphabets of keys.
const (
	digits  = "0123456789"
	hexes   = "0123456789abcdef"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	base32  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	base62  = digits + uppers + lowers
	base64s = base62 + "+/"
	urlSafe = base62 + "-_"
)

func newScanner(t testing.TB) *Scanner {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// from returns n random characters of an alphabet. They are the same in every run, and never
// those of a real key. Tests build keys at run time, so that no scanner finds one in the
// source.
func from(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// join builds a key from its parts.
func join(parts ...string) string { return strings.Join(parts, "") }

// pem returns a private key of invented base64.
func pem(r *rand.Rand, kind string, lines int) string {
	var b strings.Builder
	b.WriteString(join("-----", "BEGIN ", kind, "PRIVATE", " KEY-----\n"))
	for range lines {
		b.WriteString(from(r, base64s, 64) + "\n")
	}
	b.WriteString(join(from(r, base64s, 22), "==\n-----", "END ", kind, "PRIVATE", " KEY-----"))
	return b.String()
}

// secrets returns the text of each finding.
func secrets(content []byte, found []Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, string(content[f.Start:f.End]))
	}
	return out
}

// check checks the guarantees of every finding.
func check(t testing.TB, content []byte, found []Finding) {
	t.Helper()
	end := 0
	for _, f := range found {
		if f.Start < end || f.End < f.Start || f.End > len(content) || f.Start == f.End && len(content) > 0 {
			t.Fatalf("a finding of %s at %d to %d of %d bytes, after one that ends at %d", f.Rule, f.Start, f.End, len(content), end)
		}
		end = f.End
		if want := 1 + bytes.Count(content[:f.Start], []byte("\n")); f.Line != want && !bytes.Contains(content, []byte{0}) {
			t.Fatalf("line %d, want %d", f.Line, want)
		}
		if f.Column < 1 || f.Rule == "" || f.Description == "" || checkFingerprint(f.Fingerprint) != nil {
			t.Fatalf("%+v", f)
		}
	}
}

// eachInArchive calls a function with each file of a .tar.gz.
func eachInArchive(t testing.TB, name string, visit func(name string, content []byte)) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			visit(h.Name, content)
		}
	}
}
