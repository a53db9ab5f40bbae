package facts

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"satchel/internal/space"
)

// MaxValue limits the value of a new fact, in bytes.
const MaxValue = 8 << 10

// usualSure is the confidence of an inferred fact that states none.
const usualSure = .7

// Path returns the path of a fact's file.
func Path(kind, key string) string { return Dir + "/" + kind + "/" + key + ".md" }

// Place returns the type and the key of the fact at a path. ok is false if the
// path is not that of a fact.
func Place(p string) (kind, key string, ok bool) {
	rest, under := strings.CutPrefix(p, Dir+"/")
	kind, file, nested := strings.Cut(rest, "/")
	key = strings.TrimSuffix(file, ".md")
	if !under || !nested || kind == "" || key == "" || strings.Contains(file, "/") || path.Ext(file) != ".md" {
		return "", "", false
	}
	return kind, key, true
}

// Under reports whether a path is below memory/.
func Under(p string) bool { return strings.HasPrefix(p, Dir+"/") }

// Hidden reports whether the name of a file begins with a dot, such as .gitkeep.
func Hidden(p string) bool { return strings.HasPrefix(path.Base(p), ".") }

// Misplaced is the problem of a file under Dir that is not at the path of a fact.
const Misplaced = "A fact belongs at memory/<type>/<key>.md."

// name matches the valid names of types and keys.
var name = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N}._-]*$`)

// Name joins the words of a text into the name of a type or a key, such as "window-seat".
// ok is false if the result is not a valid name.
func Name(text string) (s string, ok bool) {
	s = norm.NFC.String(strings.Join(strings.Fields(strings.ToLower(text)), "-"))
	return s, utf8.RuneCountInString(s) <= 80 && name.MatchString(s)
}

// Statement is a fact to save.
type Statement struct {
	Type  string `json:"type"`
	Key   string `json:"key"`
	Value string `json:"value"`
	// Confidence is between 0 and 1. Nil means 1 if the statement is explicit, and 0.7 if
	// it is not.
	Confidence *float64 `json:"confidence,omitempty"`
	// Explicit means that the user said the fact. Otherwise an AI inferred it.
	Explicit bool `json:"explicit,omitempty"`
	// Expires is the last day on which the fact holds, as YYYY-MM-DD. The value Never removes
	// the day of an existing fact.
	Expires string `json:"expires,omitempty"`
	// Base is the etag that the fact must have, or NoFact if the fact must not exist. An
	// empty Base accepts every version.
	Base string `json:"base,omitempty"`
}

// Values with a special meaning in a Statement.
const (
	Never  = "never" // for Expires
	NoFact = "none"  // for Base
)

// Mistake describes what is wrong with one field of a Statement.
type Mistake struct {
	Field string // the name in JSON
	Text  string
}

// Check returns the statement with clean names and a trimmed value, and all its mistakes.
func (s Statement) Check(today string) (clean Statement, mistakes []Mistake) {
	wrong := func(field, format string, v ...any) {
		mistakes = append(mistakes, Mistake{field, fmt.Sprintf(format, v...)})
	}
	for _, n := range []struct {
		what string
		text *string
	}{{"type", &s.Type}, {"key", &s.Key}} {
		written, ok := Name(*n.text)
		if s.Base != "" && s.Base != NoFact {
			continue // the file of an existing fact can have any name
		}
		if *n.text = written; !ok {
			wrong(n.what, "The %s must be 1 to 80 letters, digits, dots, hyphens and underscores.", n.what)
		}
	}
	s.Value = trimmed(s.Value)
	switch {
	case s.Value == "":
		wrong("value", "The value is empty.")
	// For the value of an existing fact, see TooLong.
	case len(s.Value) > MaxValue && (s.Base == "" || s.Base == NoFact):
		wrong("value", "%s", s.tooLong())
	case strings.ContainsFunc(s.Value, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }):
		wrong("value", "The value has control characters.")
	}
	if c := s.Confidence; c != nil && !(*c >= 0 && *c <= 1) {
		wrong("confidence", "The confidence must be between 0 and 1.")
	}
	switch {
	case s.Expires == "", s.Expires == Never:
	case len(s.Expires) != len(time.DateOnly) || Day(s.Expires) == "":
		wrong("expires", "The day of expiry must be a date such as 2027-01-31.")
	case s.Expires < today:
		wrong("expires", "The day of expiry %s has passed.", s.Expires)
	}
	return s, mistakes
}

func (s Statement) tooLong() string {
	return fmt.Sprintf("The value has %d bytes, and %d are allowed. Put the rest into a note.", len(s.Value), MaxValue)
}

// TooLong returns the message that the value is too long for a new version of the fact in doc.
// It returns "" for a shorter value, and if doc already has the value, so that a person can
// confirm a long fact.
func (s Statement) TooLong(doc []byte) string {
	if len(s.Value) <= MaxValue || trimmed(Whole(doc)) == s.Value {
		return ""
	}
	return s.tooLong()
}

// trimmed returns a value with LF instead of CRLF, and without blanks around it.
func trimmed(value string) string {
	return strings.TrimSpace(strings.ReplaceAll(value, "\r\n", "\n"))
}

// Name returns the type and the key of the statement, as type/key.
func (s Statement) Name() string { return s.Type + "/" + s.Key }

func (s Statement) sure() float64 {
	switch {
	case s.Confidence != nil:
		return *s.Confidence
	case s.Explicit:
		return 1
	}
	return usualSure
}

func (s Statement) source() string {
	if s.Explicit {
		return Explicit
	}
	return Inferred
}

// Outcome says what a statement did to a fact.
type Outcome string

// The outcomes.
const (
	Added     Outcome = "added"
	Replaced  Outcome = "replaced"
	Confirmed Outcome = "confirmed" // the fact had the value already
	Unchanged Outcome = "unchanged" // the fact had the value, and nothing is new
	Kept      Outcome = "kept"      // the fact outranks the statement, which differs from it
	Invalid   Outcome = "invalid"   // the file is not a valid fact
	Refused   Outcome = "refused"   // the space refused the file
	Stale     Outcome = "stale"     // the fact does not have the version that Base names
)

// Origin names the client and the tool that save a fact, as the commit of the fact does.
type Origin struct {
	Client string
	Tool   string
}

// The tools with which a person saves facts. The tool remember never records these names.
const (
	ToolPages   = space.ToolWeb
	ToolCommand = "command line"
)

func (o Origin) person() bool { return o.Tool == ToolPages || o.Tool == ToolCommand }

// byPerson computes Fact.ByPerson.
func (f Fact) byPerson() bool {
	// Older files of facts name no tool.
	old := f.Tool == "" && (f.Client == space.ClientBrowser || f.Client == ToolCommand)
	return f.Source == Explicit && (old || Origin{Tool: f.Tool}.person())
}

// Attribution returns a few words that say where the fact comes from, or "" if the file has
// neither a source nor a client.
func (f Fact) Attribution() string {
	with := func(words, preposition string) string {
		if f.Client == "" {
			return words
		}
		return words + " " + preposition + " " + f.Client
	}
	switch {
	case f.ByPerson:
		return "confirmed by a person"
	case f.Source == "" && f.Client == "":
		return ""
	case f.Client == "" && f.Source == Explicit:
		return "said by the user"
	case f.Source == Explicit, f.Source == "":
		return with("said", "to")
	case f.Source == Imported:
		return with("imported", "from")
	}
	return with(f.Source, "by")
}

// Stated reports whether the user said the fact. Only an AI or an import writes another
// source, so a file without a source counts as the user's.
func (f Fact) Stated() bool { return f.Source != Inferred && f.Source != Imported }

// sure returns the confidence of a fact that the user did not state.
func (f Fact) sure() float64 {
	if f.HasSure {
		return f.Sure
	}
	return usualSure
}

// Merge applies a checked statement to the file of its fact, which is nil if there is none.
// It returns the new file, or doc itself if nothing changes. The rules are:
//
//	the user's statement      replaces every fact
//	an AI's inference         replaces an inferred or imported fact of equal or lower
//	                          confidence, and never what the user said
//	every statement           replaces a fact that has expired
//	the same value again      confirms the fact, if the statement could replace it
func Merge(doc []byte, s Statement, by Origin, now time.Time) ([]byte, Outcome) {
	return merge(doc, s, s.source(), by, now)
}

// MergeImported applies a checked statement from another program, as Merge does. It replaces
// only an imported fact that has not expired. The same value again changes nothing, so that
// a second import is not a change.
func MergeImported(doc []byte, s Statement, by Origin, now time.Time) ([]byte, Outcome) {
	if doc != nil {
		switch f := Read(doc); {
		case f.Problem != "":
			return doc, Invalid
		case trimmed(Whole(doc)) == s.Value:
			return doc, Unchanged
		case f.Source != Imported || f.Over(now.UTC().Format(time.DateOnly)):
			return doc, Kept
		}
	}
	return merge(doc, s, Imported, by, now)
}

func merge(doc []byte, s Statement, source string, by Origin, now time.Time) ([]byte, Outcome) {
	day := now.UTC().Format(time.DateOnly)
	today, sure := Raw(day), Raw(strconv.FormatFloat(s.sure(), 'g', -1, 64))
	said := []Field{{"value", s.Value}, {"confidence", sure}, {"source", source}, {"client", textOrNone(by.Client)}, {"tool", textOrNone(by.Tool)}}
	var expires any
	if s.Expires != "" && s.Expires != Never {
		expires = Raw(s.Expires)
	}
	if doc == nil {
		return New(slices.Concat(said, []Field{{"first_seen", today}, {"last_confirmed", today}, {"expires", expires}})...), Added
	}
	f := Read(doc)
	if f.Problem != "" {
		return doc, Invalid
	}
	over := f.Over(day)
	weaker := !over && !s.Explicit && (f.Stated() || s.sure() < f.sure())
	same := trimmed(Whole(doc)) == s.Value
	var set []Field
	outcome := Replaced
	newDay := s.Expires != "" && strings.TrimPrefix(s.Expires, Never) != f.Expires
	switch {
	case weaker && same && !newDay:
		return doc, Unchanged
	case weaker:
		return doc, Kept
	case same && !over:
		outcome = Confirmed
		if f.Source != source || !f.HasSure || f.Sure != s.sure() || by.person() && !f.ByPerson {
			set = said
		}
		if f.Confirmed != day {
			set = append(set, Field{"last_confirmed", today})
		}
		if newDay {
			set = append(set, Field{"expires", expires})
		}
		if len(set) == 0 {
			return doc, Unchanged
		}
	default:
		set = append(said, Field{"last_confirmed", today}, Field{"expires", expires})
	}
	out, err := Set(doc, set...)
	if err != nil {
		return doc, Invalid
	}
	return out, outcome
}

func textOrNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Words are the different words of a text, in lower case.
type Words map[string]bool

// WordsOf returns the words of a text.
func WordsOf(text string) Words {
	w := Words{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) }) {
		w[word] = true
	}
	return w
}

// Similar reports whether two texts share at least three quarters of their words.
func (w Words) Similar(other Words) bool {
	both := 0
	for word := range w {
		if other[word] {
			both++
		}
	}
	return both > 0 && 4*both >= 3*max(len(w), len(other))
}

// unspaced are scripts that do not separate words by blanks.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// Contains reports whether a text contains all words of a query. It returns false for an empty
// query. A word of a script that does not separate words can be a part of a longer run.
func Contains(text string, query Words) bool {
	words := WordsOf(text)
	for w := range query {
		part := strings.ContainsFunc(w, func(r rune) bool { return unicode.In(r, unspaced...) })
		if !words[w] && !(part && strings.Contains(strings.ToLower(text), w)) {
			return false
		}
	}
	return len(query) > 0
}
