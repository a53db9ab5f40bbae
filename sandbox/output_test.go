package sandbox

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"satchel/sandbox/protocol"
)

func TestClean(t *testing.T) {
	long := strings.Repeat("x", maxControlString+10)
	for _, c := range []struct{ name, in, want string }{
		{"plain text", "hello, wörld 日本\n\ttab", "hello, wörld 日本\n\ttab"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor movement", "a\x1b[2Jb\x1b[10;20Hc\x1b[?25l", "abc"},
		{"window title (OSC, BEL)", "\x1b]0;evil\x07text", "text"},
		{"hyperlink (OSC, ST)", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"clipboard write (OSC 52)", "\x1b]52;c;ZXZpbA==\x07x", "x"},
		{"device control string", "\x1bPq#0;2;0;0;0\x1b\\x", "x"},
		{"application program command", "\x1b_payload\x1b\\x", "x"},
		{"privacy message and SOS", "\x1b^a\x1b\\\x1bXb\x1b\\x", "x"},
		{"charset selection", "\x1b(0x\x1b)B", "x"},
		{"two-character escapes", "\x1b7\x1bc\x1b=x", "x"},
		{"C1 as UTF-8", "\u009b31mred\u009d0;t\u009cx\u0085", "redx"},
		{"a lone escape", "a\x1b", "a"},
		{"an unfinished CSI", "a\x1b[31", "a"},
		{"an escape inside a CSI", "a\x1b[3\x1b[1mb", "ab"},
		{"a string that is never closed hides nothing", "a\x1b]0;" + long, "a0;" + long},
		{"control characters", "a\x00b\x07c\x08d\x7fe\x0bf\x0cg", "abcdefg"},
		{"text in another order", "a\u202eb\u202cc\u2066d\u2069", "a<U+202E>b<U+202C>c<U+2066>d<U+2069>"},
		{"marks of right-to-left text", "שלום\u200f!", "שלום\u200f!"},
		{"CR LF", "a\r\nb\r\n", "a\nb\n"},
		{"a lone CR ends a line", "10%\r20%\rdone\n", "10%\n20%\ndone\n"},
		{"bytes that are not UTF-8", "a\xff\xfe\x80b\xc3", "a\ufffdb\ufffd"},
		{"UTF-16 surrogates in UTF-8", "a\xed\xa0\x80b", "a\ufffdb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Clean([]byte(c.in)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestPrepareOutput(t *testing.T) {
	text := func(n int, s string) protocol.Output { return protocol.Output{Head: []byte(strings.Repeat(s, n))} }
	cut := protocol.Output{Head: []byte("begin é"[:7]), Tail: []byte("é end"[1:]), Dropped: 1_000_000, Saved: "/run/satchel/output/1/stdout"}
	for _, c := range []struct {
		name             string
		stdout, stderr   protocol.Output
		outCut, errCut   bool
		outText, errText string // where whole
	}{
		{name: "short", stdout: text(1, "out"), stderr: text(1, "err"), outText: "out", errText: "err"},
		{name: "exactly fitting", stdout: text(999, "é"), stderr: text(1, "e"), outText: strings.Repeat("é", 999), errText: "e"},
		{name: "stdout too long", stdout: text(5000, "é"), stderr: text(1, "e"), outCut: true, errText: "e"},
		{name: "stderr too long", stdout: text(10, "o"), stderr: text(5000, "é"), errCut: true, outText: "oooooooooo"},
		{name: "both too long", stdout: text(5000, "o"), stderr: text(5000, "é"), outCut: true, errCut: true},
		{name: "cut by the agent", stdout: cut, outCut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			const max = 1000
			o, e := prepareOutput(c.stdout, c.stderr, max)
			if n := utf8.RuneCountInString(o.Text) + utf8.RuneCountInString(e.Text); n > max {
				t.Errorf("%d characters", n)
			}
			if (o.Cut > 0) != c.outCut || (e.Cut > 0) != c.errCut {
				t.Errorf("cut %d and %d", o.Cut, e.Cut)
			}
			if !c.outCut && o.Text != c.outText || !c.errCut && e.Text != c.errText {
				t.Errorf("%q and %q", o.Text, e.Text)
			}
			if c.outCut && !strings.Contains(o.Text, "bytes cut here") || c.errCut && !strings.Contains(e.Text, "bytes cut here") {
				t.Errorf("no line about the cut: %.300q, %.300q", o.Text, e.Text)
			}
		})
	}
	lying, _ := prepareOutput(protocol.Output{Head: []byte("x"), Dropped: 9, Saved: "/run\x1b[2J\xff"}, protocol.Output{}, 1000)
	if !strings.Contains(lying.Text, "is in /run\ufffd") || lying.Saved != "/run\ufffd" {
		t.Errorf("a file's name as an agent says it: %q, %q", lying.Text, lying.Saved)
	}
	o, _ := prepareOutput(cut, protocol.Output{}, 1000)
	want := "begin \n[… 1000000 bytes cut here; more of it is in /run/satchel/output/1/stdout …]\n end"
	if o.Text != want {
		t.Errorf("%q, want %q", o.Text, want)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07", "\x1bP\x1b\\", "\xc2\x9b1m", "\r\n\r", "\xff\x1b", "\x1b\x1b\x1b[", "\xc2\x1b\x9b"} {
		f.Add([]byte(s), 7, int64(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, at int, dropped int64) {
		check := func(s string) {
			if !utf8.ValidString(s) {
				t.Errorf("not UTF-8: %q", s)
			}
			for _, r := range s {
				if unicode.IsControl(r) && r != '\n' && r != '\t' {
					t.Fatalf("%U is left in %q", r, s)
				}
			}
		}
		s := Clean(b)
		check(s)
		if again := Clean([]byte(s)); again != s {
			t.Errorf("cleaning twice changes %q to %q", s, again)
		}
		at = min(max(at, 0), len(b))
		const most = 300
		o, e := prepareOutput(protocol.Output{Head: b[:at], Tail: b[at:], Dropped: max(0, dropped)}, protocol.Output{Head: b}, most)
		check(o.Text)
		check(e.Text)
		if n := utf8.RuneCountInString(o.Text) + utf8.RuneCountInString(e.Text); n > most {
			t.Errorf("%d characters, and %d are allowed", n, most)
		}
	})
}
