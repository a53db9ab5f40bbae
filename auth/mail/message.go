package mail

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
)

// maxSubject bounds a subject in bytes.
const maxSubject = 200

// compose writes the message (RFC 5322) with line ends of CR LF, and not yet
// stuffed with dots.
func (m *Mailer) compose(to, subject, text string) ([]byte, error) {
	switch {
	case len(subject) > maxSubject:
		return nil, fault.New(fault.TooLarge, "The subject has %d bytes, and %d are allowed.", len(subject), maxSubject)
	case !utf8.ValidString(subject) || strings.ContainsFunc(subject, unicode.IsControl):
		return nil, fault.Wrap(errors.New("mail: the subject has control characters"), fault.Invalid, "The subject has characters that are not allowed in it.")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, fault.New(fault.Invalid, "The text is not UTF-8.")
	}
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", fold(m.from.String())},
		{"To", "<" + to + ">"},
		{"Subject", fold(mime.QEncoding.Encode("utf-8", subject))},
		{"Date", m.o.Now().UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + strings.ToLower(rand.Text()) + "@" + m.domain + ">"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
		// No out-of-office answers to it (RFC 3834 section 5).
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

// fold breaks a header's value before each encoded word, of which a line may hold
// one and the header's name not beside it: 76 characters are a line's limit there
// (RFC 2047 section 2).
func fold(s string) string {
	s = strings.ReplaceAll(s, "?= =?", "?=\r\n =?")
	if strings.HasPrefix(s, "=?") {
		s = "\r\n " + s
	}
	return s
}
