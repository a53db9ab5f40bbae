package mail

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"mime/quotedprintable"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
)

// maxSubject is the maximum length of a subject in bytes.
const maxSubject = 200

// compose returns the message (RFC 5322) with line ends of CR LF. The caller does the
// dot-stuffing.
func (m *Mailer) compose(to, subject, text string) ([]byte, error) {
	switch {
	case len(subject) > maxSubject:
		return nil, fault.New(fault.TooLarge, "The subject has %d bytes, and %d are allowed.", len(subject), maxSubject)
	case !utf8.ValidString(subject) || strings.ContainsFunc(subject, unicode.IsControl):
		return nil, fault.Wrap(errors.New("mail: the subject is not valid UTF-8 or has control characters"), fault.Invalid, "The subject has characters that are not allowed in it.")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, fault.New(fault.Invalid, "The text must be UTF-8 without NUL bytes.")
	}
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", strings.ReplaceAll(m.from.String(), "?= =?", "?=\r\n =?")},
		{"To", "<" + to + ">"},
		{"Subject", encodeSubject(subject)},
		{"Date", m.o.Now().UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + strings.ToLower(rand.Text()) + "@" + m.domain + ">"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
		// The header prevents out-of-office answers (RFC 3834 section 5).
		{"Auto-Submitted", "auto-generated"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))); err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\r\n")) {
		b.WriteString("\r\n")
	}
	return b.Bytes(), nil
}

// encodeSubject encodes a subject so that a mail program shows it unchanged. If the subject
// is not plain, it becomes encoded words (RFC 2047 section 2), each on its own line. A plain
// subject that looks like an encoded word is encoded too.
func encodeSubject(s string) string {
	plain := !strings.Contains(s, "=?") && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if plain {
		return s
	}
	const chunk = 45 // bytes; an encoded word of them has 72 characters, and 75 are allowed
	var b strings.Builder
	for len(s) > 0 {
		n := min(chunk, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		b.WriteString("\r\n =?utf-8?b?" + base64.StdEncoding.EncodeToString([]byte(s[:n])) + "?=")
		s = s[n:]
	}
	return b.String()
}
