package secretscan

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filled returns about a megabyte of the files that match, over and over.
func filled(b *testing.B, pattern string) []byte {
	b.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		b.Fatal(names, err)
	}
	var text []byte
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, content...)
	}
	return bytes.Repeat(text, 1+1<<20/len(text))[:1<<20]
}

// What a look for passwords costs, of what spaces hold and of what would keep it busy.
func BenchmarkSuspects(b *testing.B) {
	s := newScanner(b)
	code := filled(b, "*.go")
	for name, text := range map[string][]byte{
		"prose":                   filled(b, "../../docs/*.md"),
		"code":                    code,
		"code in one line":        bytes.ReplaceAll(bytes.ReplaceAll(code, []byte("\n"), nil), []byte("\t"), nil),
		"attack: names and signs": []byte(strings.Repeat("token=", 1<<20/6)),
		"attack: long values":     []byte(strings.Repeat(strings.Repeat("Token=", 33)+" ", 1<<20/199)),
		"attack: long phrases":    []byte(strings.Repeat(strings.Repeat("pwd:é", 130)+" ", 1<<20/781)),
		"attack: addresses":       []byte(strings.Repeat("a://a:", 1<<20/6)),
		"attack: many passwords":  []byte(strings.Repeat("password=9x-example-Q7m ", 1<<20/24)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Suspects("x", text)
			}
		})
	}
}
