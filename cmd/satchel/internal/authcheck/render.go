package authcheck

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Write writes a finding as text: its status, name and observation, and below them the fix.
func (f Finding) Write(w io.Writer) error {
	mark := map[Status]string{OK: "ok", Warning: "warning", Failed: "FAILED", Skipped: "skipped"}[f.Status]
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%-8s %s: %s\n", mark, f.Name, line(f.What))
	if f.Fix != "" {
		fmt.Fprintf(b, "%-8s → %s\n", "", line(f.Fix))
	}
	return b.Flush()
}

// WriteClients writes the table of clients as text.
func (r Report) WriteClients(w io.Writer) error {
	width := 0
	for _, c := range r.Clients {
		width = max(width, utf8.RuneCountInString(c.Name))
	}
	b := bufio.NewWriter(w)
	for _, c := range r.Clients {
		reason := ""
		if c.Reason != "" {
			reason = ": " + strings.TrimSuffix(line(c.Reason), ".")
		}
		fmt.Fprintf(b, "%s%s  %s%s\n", c.Name, strings.Repeat(" ", width-utf8.RuneCountInString(c.Name)), c.Verdict, reason)
	}
	return b.Flush()
}

// Write writes the whole report as text.
func (r Report) Write(w io.Writer) error {
	for _, f := range r.Findings {
		if err := f.Write(w); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return r.WriteClients(w)
}

// line returns a text of another server in a form that is safe in one line of a terminal.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return ' '
		}
		return r
	}, s)
}
