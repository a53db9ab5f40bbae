package secretscan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Refusal is the reason why a file may not be committed. It is the cause of Screen's error.
type Refusal struct {
	Path space.Path
	// Findings are the findings that are new to the path and not allowed. A finding whose
	// Line is 0 is in the path itself.
	Findings []Finding
}

// Error names the rules and lines of the first ten findings, for logs.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString("secrets:")
	for _, f := range r.Findings[:min(len(r.Findings), 10)] {
		fmt.Fprintf(&b, " %s (%s) at line %d", f.Fingerprint, f.Rule, f.Line)
	}
	return b.String()
}

// Screen returns nil if the content may be committed, else a fault.Forbidden whose cause is a
// *Refusal. The fault's message names the line, the rule and how a person may allow the
// secret, but not the path. The function before may be nil. It returns the current content at
// the path: a secret that the file already has does not block other changes to the file. The
// path is searched too. Screen fits gitstore.Options.Screen.
//
// The error may also be ctx's, or a fault.Unavailable if the database does not answer. The
// file is then not committed either.
func (s *Scanner) Screen(ctx context.Context, id space.SpaceID, p space.Path, content []byte, before func() ([]byte, error)) error {
	found, err := s.scan(ctx, content)
	if err != nil {
		return err
	}
	named, err := s.scan(ctx, []byte(p))
	if err != nil {
		return err
	}
	for _, f := range named {
		f.Line, f.Column, f.Start, f.End = 0, 0, 0, 0
		found = append(found, f)
	}
	if len(found) == 0 {
		return nil
	}
	known := map[string]bool{}
	if before != nil {
		old, err := before()
		if err != nil {
			return fmt.Errorf("what the space has at a path: %w", err)
		}
		had, err := s.scan(ctx, old)
		if err != nil {
			return err
		}
		for _, f := range had {
			known[f.Fingerprint] = true
		}
	}
	refusal := &Refusal{Path: p, Findings: found}
	allowed, err := s.allowed(ctx, id, refusal.fingerprints())
	if err != nil {
		return err
	}
	refusal.Findings = slices.DeleteFunc(found, func(f Finding) bool { return known[f.Fingerprint] || allowed[f.Fingerprint] })
	if len(refusal.Findings) == 0 {
		return nil
	}
	s.remember(id, refusal)
	return fault.Wrap(refusal, fault.Forbidden, "%s", refusal.sentence())
}

// MaxSentence is the maximal length in bytes of the message of Screen's Forbidden error,
// with the built-in rules.
const MaxSentence = 700

// shownFindings is the maximal number of findings that a message names.
const shownFindings = 3

// sentence explains a refusal to the AI that wrote the file and to its user. The text is
// shown beside the path. It has at most MaxSentence bytes, so that no caller has to cut off
// the command at its end.
func (r *Refusal) sentence() string {
	var b strings.Builder
	for i, f := range r.Findings[:min(len(r.Findings), shownFindings)] {
		if i > 0 {
			b.WriteString(", ")
		}
		at := fmt.Sprintf("line %d", f.Line)
		switch {
		case f.Rule == RuleUnread:
			at = fmt.Sprintf("from line %d on it", f.Line)
		case f.Line == 0:
			at = "its name"
		}
		if i == 0 {
			at = strings.ToUpper(at[:1]) + at[1:]
		}
		if f.Rule == RuleUnread {
			fmt.Fprintf(&b, "%s has too many keys, or beginnings of keys, to be searched", at)
			continue
		}
		if i == 0 || r.Findings[i-1].Rule == RuleUnread {
			at += " looks like a secret"
		}
		fmt.Fprintf(&b, "%s (%s, rule %s)", at, firstBytes(f.Description, maxShown), firstBytes(f.Rule, maxShown))
	}
	if n := len(r.Findings) - shownFindings; n > 0 {
		fmt.Fprintf(&b, ", and %d more", n)
	}
	prints := r.fingerprints()
	if len(prints) == 1 {
		fmt.Fprintf(&b, ". Put a placeholder in its place, or the remote could refuse every later push. If it is not a secret, a person can allow it: satchel space allow --user NAME %s", prints[0])
		return b.String()
	}
	fmt.Fprintf(&b, ". Put placeholders in their place, or the remote could refuse every later push. A person can allow false positives one by one: satchel space allow --user NAME %s (likewise %s",
		prints[0], strings.Join(prints[1:min(len(prints), shownFindings)], ", "))
	if len(prints) > shownFindings {
		b.WriteString("; the next answer names more")
	}
	b.WriteByte(')')
	return b.String()
}

// Warning returns the text for a space without a remote, where the file is committed
// anyway. The text says what was found, and how to remove it. It is empty if the only
// findings are parts that were not searched.
func (r *Refusal) Warning() string {
	found := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Rule == RuleUnread })
	if len(found) == 0 {
		return ""
	}
	f, more := found[0], ""
	at, what := fmt.Sprintf("Line %d", f.Line), ""
	if f.Line == 0 {
		at, what = "Its name", " --file PATH, after you have renamed the file"
	}
	if n := len(found) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s looks like a secret (%s)%s, which is in the history now. A person can take it out with satchel space purge --user NAME%s (and should replace it where it is used), or allow it with satchel space allow --user NAME %s if it is not a secret.",
		at, firstBytes(f.Description, maxShown), more, what, f.Fingerprint)
}

// maxShown bounds the text about a rule in a sentence, in bytes. The texts about built-in
// rules are shorter.
const maxShown = 60

func firstBytes(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// fingerprints returns the distinct fingerprints of the findings.
func (r *Refusal) fingerprints() []string {
	var out []string
	for _, f := range r.Findings {
		if !slices.Contains(out, f.Fingerprint) {
			out = append(out, f.Fingerprint)
		}
	}
	return out
}

// shownPath returns a path without the secrets in it.
func (s *Scanner) shownPath(p space.Path) string {
	return string(Redact([]byte(p), s.Scan("", []byte(p))))
}

// maxRefused is how many refused secrets are remembered for Allow.
const maxRefused = 1000

// place is where a secret was refused, for the list of allowances.
type place struct {
	rule string
	path space.Path
}

type refusedKey struct {
	space       space.SpaceID
	fingerprint string
}

func (s *Scanner) remember(id space.SpaceID, r *Refusal) {
	path := s.shownPath(r.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range r.Findings[:min(len(r.Findings), shownFindings)] {
		if len(s.refused) >= maxRefused {
			clear(s.refused)
		}
		s.refused[refusedKey{id, f.Fingerprint}] = place{f.Rule, space.Path(path)}
	}
}

// whereRefused returns where a secret was last refused.
func (s *Scanner) whereRefused(id space.SpaceID, fingerprint string) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.refused[refusedKey{id, fingerprint}]
	return at, ok
}
