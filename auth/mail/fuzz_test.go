package mail

import (
	"io"
	"mime"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
)

// For every accepted recipient, subject and text, the message has exactly the right
// headers, that subject and that text. Its lines are valid in SMTP.
func FuzzMessage(f *testing.F) {
	m, err := New(Options{URL: "smtps://mail.example.com", From: "Satchel <satchel@example.com>"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("ada@example.org", "Sign in", "Hello\n.\n")
	f.Add("ada@example.org\r\nBcc: eve@example.org", "s\r\nBcc: x", "\r\n.\r\nQUIT\r\n")
	f.Add("a+b=c@example.org", "=?utf-8?q?x?= =?utf-8?q?y?=", "=3D \t\n é")
	f.Add("a@b", "   ", "\r\r\n\n")
	f.Fuzz(func(t *testing.T, to, subject, text string) {
		if _, err := checkAddress(to); err != nil {
			return
		}
		if strings.ContainsAny(to, "\r\n <>\"\\,;:()[]\x00") || strings.Count(to, "@") != 1 {
			t.Fatalf("the address %q was taken", to)
		}
		b, err := m.compose(to, subject, text)
		if err != nil {
			return
		}
		got, err := netmail.ReadMessage(strings.NewReader(string(b)))
		if err != nil {
			t.Fatalf("%v in %q", err, b)
		}
		var names []string
		for name, values := range got.Header {
			if names = append(names, name); len(values) != 1 {
				t.Fatalf("%s came %d times in %q", name, len(values), b)
			}
		}
		slices.Sort(names)
		if want := []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}; !slices.Equal(names, want) {
			t.Fatalf("the headers are %q in %q", names, b)
		}
		if got.Header.Get("To") != "<"+to+">" {
			t.Fatalf("To is %q", got.Header.Get("To"))
		}
		if s, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject")); err != nil || s != subject {
			t.Fatalf("the subject %q came as %q, %v", subject, s, err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
		want := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		if s := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || strings.TrimSuffix(s, "\n") != strings.TrimSuffix(want, "\n") {
			t.Fatalf("the text %q came as %q, %v", want, s, err)
		}
		for line := range strings.SplitSeq(string(b), "\r\n") {
			if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("a line is %q", line)
			}
		}
	})
}
