package facts

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/internal/frontmatter"
)

// TypeOfRepaired is the type of a repaired fact whose path names none.
const TypeOfRepaired = "note"

// RepairedPlace returns the type and the key that the file at p, a path under Dir, gets as a fact.
// If p already names a type and a key, RepairedPlace returns these.
func RepairedPlace(p string) (kind, key string) {
	if kind, key, ok := Place(p); ok {
		return kind, key
	}
	parts := strings.Split(strings.TrimPrefix(p, Dir+"/"), "/")
	last := len(parts) - 1
	parts[last] = strings.TrimSuffix(parts[last], path.Ext(parts[last]))
	kind = TypeOfRepaired
	if last > 0 {
		kind, parts = parts[0], parts[1:]
	}
	return cleanName(kind, TypeOfRepaired), cleanName(strings.Join(parts, "-"), "fact")
}

// cleanName returns the text as a valid name, or other if nothing of it is left.
func cleanName(text, other string) string {
	text = strings.Map(func(r rune) rune {
		if r != '.' && r != '_' && r != utf8.RuneError && unicode.In(r, unicode.L, unicode.M, unicode.N) {
			return r
		}
		return ' '
	}, text)
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60])
	}
	if s, ok := Name(text); ok {
		return s
	}
	return other
}

// Repair returns a valid fact with the text and the known fields of a damaged file. A valid fact
// stays as it is. A file without a value gets its text as the value. Nobody has said the value
// in this form, so a repaired fact counts as inferred, unless it was imported, and waits to be
// confirmed. ok is false if the file has no text that a fact can hold.
func Repair(doc []byte, now time.Time) (fixed []byte, ok bool) {
	if Read(doc).Problem == "" {
		return doc, true
	}
	if !utf8.Valid(doc) {
		return nil, false
	}
	doc = []byte(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, string(doc)))
	d := readable(doc)
	text := trimmed(string(d.Body))
	value, rest := d.String("value"), text
	if value == "" {
		value, rest = text, ""
		if value == "" { // the front matter is all there is
			value = wordsOf(doc)
		}
		if len(value) > MaxValue {
			value, rest, _ = strings.Cut(value, "\n")
		}
	}
	if value = trimmed(value); value == "" || len(value) > MaxValue {
		return nil, false
	}
	today := now.UTC().Format(time.DateOnly)
	day := func(key, otherwise string) any {
		if at := Day(d.String(key)); at != "" {
			return Raw(at)
		}
		if otherwise == "" {
			return nil
		}
		return Raw(otherwise)
	}
	sure, known := d.Number("confidence")
	if !known || !(sure >= 0 && sure <= 1) {
		sure = usualSure
	}
	source := Inferred
	if s := d.String("source"); s == Imported {
		source = s
	}
	fixed = New(
		Field{"value", value}, Field{"confidence", Raw(strconv.FormatFloat(sure, 'g', -1, 64))}, Field{"source", source},
		Field{"client", textOrNone(d.String("client"))}, Field{"first_seen", day("first_seen", today)},
		Field{"last_confirmed", day("last_confirmed", "")}, Field{"expires", day("expires", "")},
	)
	if rest != "" {
		fixed = append(fixed, rest+"\n"...)
	}
	return fixed, Read(fixed).Problem == ""
}

// readable returns the readable parts of a file. If the front matter is not valid, readable
// parses each of its lines separately.
func readable(doc []byte) frontmatter.Document {
	d, err := frontmatter.Parse(doc)
	if err == nil {
		return d
	}
	lines := slices.Collect(strings.Lines(string(doc)))
	d = frontmatter.Document{Fields: map[string]any{}}
	for i, l := range lines[1:] { // the first line begins the front matter
		if strings.TrimRight(l, " \t\n") == "---" {
			d.Body = []byte(strings.Join(lines[i+2:], ""))
			break
		}
		m := keyLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		text := strings.TrimSpace(l[strings.Index(l, ":")+1:])
		d.Fields[m[1]] = text
		if one, err := frontmatter.Parse([]byte("---\n" + l + "---\n")); err == nil && one.Fields[m[1]] != nil {
			d.Fields[m[1]] = one.Fields[m[1]]
		}
	}
	return d
}

// wordsOf returns the lines of a file that have a letter or a digit. The lines that mark the
// front matter have none.
func wordsOf(doc []byte) string {
	lines := slices.DeleteFunc(strings.Split(string(doc), "\n"), func(l string) bool {
		return !strings.ContainsFunc(l, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
	return trimmed(strings.Join(lines, "\n"))
}
