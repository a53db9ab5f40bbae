package facts_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"satchel/internal/facts"
)

var day1 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// merged applies statements in order.
func merged(doc []byte, all ...facts.Statement) []byte {
	for _, s := range all {
		doc, _ = facts.Merge(doc, s, facts.Origin{Client: "client", Tool: "remember"}, day1)
	}
	return doc
}

func sure(f float64) *float64 { return &f }

// TestMerge is the specification of which statement wins.
func TestMerge(t *testing.T) {
	say := func(value string) facts.Statement { return facts.Statement{Value: value, Explicit: true} }
	infer := func(value string, c float64) facts.Statement {
		return facts.Statement{Value: value, Confidence: sure(c)}
	}
	for _, c := range []struct {
		name    string
		doc     string // "": none
		s       facts.Statement
		outcome facts.Outcome
		want    string // the value afterwards
	}{
		{"a new fact", "", infer("tea", .5), facts.Added, "tea"},
		{"said over inferred", "value: tea\nsource: inferred\nconfidence: 1", say("milk"), facts.Replaced, "milk"},
		{"said over said", "value: tea\nsource: user_explicit", say("milk"), facts.Replaced, "milk"},
		{"inferred over said", "value: tea\nsource: user_explicit\nconfidence: 0.1", infer("milk", 1), facts.Kept, "tea"},
		{"inferred over what a person wrote by hand", "value: tea", infer("milk", 1), facts.Kept, "tea"},
		{"inferred over inferred, more sure", "value: tea\nsource: inferred\nconfidence: 0.5", infer("milk", .6), facts.Replaced, "milk"},
		{"inferred over inferred, as sure", "value: tea\nsource: inferred\nconfidence: 0.5", infer("milk", .5), facts.Replaced, "milk"},
		{"inferred over inferred, less sure", "value: tea\nsource: inferred\nconfidence: 0.5", infer("milk", .4), facts.Kept, "tea"},
		{"inferred over imported", "value: tea\nsource: imported\nconfidence: 0.5", infer("milk", .5), facts.Replaced, "milk"},
		{"over an expired fact", "value: tea\nsource: user_explicit\nexpires: 2026-11-19", infer("milk", .1), facts.Replaced, "milk"},
		{"said again later", "value: tea\nsource: user_explicit\nconfidence: 1\nlast_confirmed: 2026-01-01", say("tea"), facts.Confirmed, "tea"},
		{"said what was inferred", "value: tea\nsource: inferred\nconfidence: 0.5\nlast_confirmed: 2026-11-20", say("tea"), facts.Confirmed, "tea"},
		{"said again on the same day", "value: tea\nsource: user_explicit\nconfidence: 1\nlast_confirmed: 2026-11-20", say("tea"), facts.Unchanged, "tea"},
		{"inferred what was said", "value: tea\nsource: user_explicit", infer("tea", 1), facts.Unchanged, "tea"},
		{"the same text in a block", "value: >\n  tea\nsource: user_explicit\nconfidence: 1\nlast_confirmed: 2026-11-20", say("tea"), facts.Unchanged, "tea\n"},
		{"said with no day of expiry", "value: tea\nsource: user_explicit\nconfidence: 1\nlast_confirmed: 2026-11-20\nexpires: 2027-01-01", facts.Statement{Value: "tea", Explicit: true, Expires: facts.Never}, facts.Confirmed, "tea"},
		{"inferred with no day of expiry", "value: tea\nsource: user_explicit\nexpires: 2027-01-01", facts.Statement{Value: "tea", Expires: facts.Never}, facts.Kept, "tea"},
		{"never, of a fact without a day", "value: tea\nsource: user_explicit\nconfidence: 1\nlast_confirmed: 2026-11-20", facts.Statement{Value: "tea", Explicit: true, Expires: facts.Never}, facts.Unchanged, "tea"},
		{"not a fact", "colour: red", say("tea"), facts.Invalid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var doc []byte
			if c.doc != "" {
				doc = []byte("---\n" + c.doc + "\n---\nMore *text*.\n")
			}
			out, outcome := facts.Merge(doc, c.s, facts.Origin{Client: "client", Tool: "remember"}, day1)
			f := facts.Read(out)
			if outcome != c.outcome || f.Value != c.want {
				t.Errorf("%s, %q\n%s", outcome, f.Value, out)
			}
			if doc != nil && !strings.HasSuffix(string(out), "---\nMore *text*.\n") {
				t.Errorf("the text is lost:\n%s", out)
			}
			if c.s.Explicit && outcome != facts.Invalid && (!f.Stated() || f.Confirmed != "2026-11-20") {
				t.Errorf("not confirmed by the user:\n%s", out)
			}
			if c.s.Expires == facts.Never && c.s.Explicit && f.Expires != "" {
				t.Errorf("it still expires:\n%s", out)
			}
		})
	}
}

// Properties of merging, for random statements about one fact: a repeated statement changes
// nothing, an explicit statement is never lost to inferences, and inferences of different
// confidence have the same result in each order.
func TestMergeProperties(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		statement := func() facts.Statement {
			s := facts.Statement{Value: fmt.Sprint("v", r.IntN(3)), Explicit: r.IntN(4) == 0}
			if r.IntN(3) > 0 {
				s.Confidence = sure(float64(r.IntN(11)) / 10)
			}
			if r.IntN(4) == 0 {
				s.Expires = "2027-01-31"
			}
			return s
		}
		var all []facts.Statement
		var doc []byte
		said := ""
		for range 1 + r.IntN(8) {
			s := statement()
			all = append(all, s)
			doc = merged(doc, s)
			if s.Explicit {
				said = s.Value
			}
			if again, outcome := facts.Merge(doc, s, facts.Origin{Client: "another", Tool: "remember"}, day1); string(again) != string(doc) || outcome != facts.Unchanged && outcome != facts.Kept {
				t.Fatalf("seed %d: not idempotent, %s:\n%s\nbecame\n%s", seed, outcome, doc, again)
			}
			if f := facts.Read(doc); said != "" && (f.Value != said || !f.Stated()) {
				t.Fatalf("seed %d: the user said %q, and the fact is\n%s", seed, said, doc)
			}
		}
		// At most one explicit statement, and inferences with different confidences.
		all = nil
		for i := range 6 {
			all = append(all, facts.Statement{Value: fmt.Sprint("v", r.IntN(3)), Confidence: sure(float64(i) / 10)})
		}
		if r.IntN(2) == 0 {
			all = append(all, facts.Statement{Value: "said", Explicit: true})
		}
		want := facts.Read(merged(nil, all...))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if got := facts.Read(merged(nil, all...)); got != want {
			t.Fatalf("seed %d: %+v in one order, and %+v in another", seed, want, got)
		}
	}
}

// Whatever is accepted can be read again.
func TestEveryCharacterSurvives(t *testing.T) {
	for r := rune(1); r <= 0xffff; r++ {
		if r == 0x3000 {
			r = 0xd7ff // the letters between are alike
		}
		s, mistakes := facts.Statement{Type: "a", Key: "b", Value: "x" + string(r) + "y"}.Check("2026-11-20")
		if len(mistakes) > 0 || r >= 0xd800 && r < 0xe000 {
			continue
		}
		if f := facts.Read(merged(nil, s)); f.Value != s.Value {
			t.Fatalf("%U: %q, %s", r, f.Value, f.Problem)
		}
	}
}

func TestStatementsAreChecked(t *testing.T) {
	good := facts.Statement{Type: "Preference", Key: "Window seat", Value: " Prefers\r\nwindows ", Expires: "2026-11-20"}
	clean, mistakes := good.Check("2026-11-20")
	if clean.Name() != "preference/window-seat" || clean.Value != "Prefers\nwindows" || mistakes != nil {
		t.Errorf("%+v, %q", clean, mistakes)
	}
	for name, change := range map[string]func(*facts.Statement){
		"no type":               func(s *facts.Statement) { s.Type = "" },
		"attack: a path as key": func(s *facts.Statement) { s.Key = "../../skills/x" },
		"attack: a hidden file": func(s *facts.Statement) { s.Type = ".git" },
		"a long key":            func(s *facts.Statement) { s.Key = strings.Repeat("k", 81) },
		"no value":              func(s *facts.Statement) { s.Value = " \n" },
		"a long value":          func(s *facts.Statement) { s.Value = strings.Repeat("v", facts.MaxValue+1) },
		"control characters":    func(s *facts.Statement) { s.Value = "a\x1b[31m" },
		"a confidence above 1":  func(s *facts.Statement) { s.Confidence = sure(1.1) },
		"a day that is none":    func(s *facts.Statement) { s.Expires = "2026-02-30" },
		"a day that is past":    func(s *facts.Statement) { s.Expires = "2026-11-19" },
		"a time of day":         func(s *facts.Statement) { s.Expires = "2027-01-31T10:00:00Z" },
		"a negative confidence": func(s *facts.Statement) { s.Confidence = sure(-.1) },
	} {
		s := good
		change(&s)
		if _, mistakes := s.Check("2026-11-20"); len(mistakes) != 1 {
			t.Errorf("%s: %q", name, mistakes)
		}
	}
}

// TestMergeImported is the specification of what an import may replace.
func TestMergeImported(t *testing.T) {
	tests := []struct {
		name, doc string
		want      facts.Outcome
	}{
		{"no fact", "", facts.Added},
		{"an imported fact", "---\nvalue: old\nsource: imported\n---\n", facts.Replaced},
		{"the same value", "---\nvalue: new\nsource: imported\nlast_confirmed: 2026-01-01\n---\n", facts.Unchanged},
		{"the same value, said by the user", "---\nvalue: new\nsource: explicit\n---\n", facts.Unchanged},
		{"said by the user", "---\nvalue: old\nsource: explicit\n---\n", facts.Kept},
		{"written by hand", "---\nvalue: old\n---\n", facts.Kept},
		{"inferred", "---\nvalue: old\nsource: inferred\nconfidence: 0.1\n---\n", facts.Kept},
		{"expired", "---\nvalue: old\nsource: imported\nexpires: 2026-01-01\n---\n", facts.Kept},
		{"not a fact", "old", facts.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var doc []byte
			if tt.doc != "" {
				doc = []byte(tt.doc)
			}
			got, outcome := facts.MergeImported(doc, facts.Statement{Value: "new"}, facts.Origin{Client: "claude", Tool: "import"}, day1)
			changed := outcome == facts.Added || outcome == facts.Replaced
			if outcome != tt.want || (string(got) != tt.doc) != changed || changed && facts.Read(got).Source != facts.Imported {
				t.Errorf("%s: %s", outcome, got)
			}
		})
	}
}

// TestOrigin is the specification of what is shown about the origin of a fact, and of who
// counts as a person.
func TestOrigin(t *testing.T) {
	for _, tt := range []struct {
		doc, origin string
		person      bool
	}{
		{"source: user_explicit\nclient: browser\ntool: web", "confirmed by a person", true},
		{"source: user_explicit\nclient: command line\ntool: command line", "confirmed by a person", true},
		{"source: user_explicit\nclient: browser", "confirmed by a person", true},
		{"source: user_explicit\nclient: claude-code/2.1\ntool: remember", "said to claude-code/2.1", false},
		{"source: user_explicit\nclient: browser\ntool: remember", "said to browser", false},
		{"source: user_explicit", "said by the user", false},
		{"source: inferred\nclient: browser\ntool: web", "inferred by browser", false},
		{"source: inferred", "inferred", false},
		{"source: imported\nclient: chatgpt\ntool: import", "imported from chatgpt", false},
		{"confidence: 1", "", false},
	} {
		f := facts.Read([]byte("---\nvalue: v\n" + tt.doc + "\n---\n"))
		if f.Attribution() != tt.origin || f.ByPerson != tt.person {
			t.Errorf("%s: %q, %v", tt.doc, f.Attribution(), f.ByPerson)
		}
	}
}

// A person who confirms what an AI saved becomes the origin of the fact. An AI that says the
// same again does not.
func TestAPersonConfirms(t *testing.T) {
	said := facts.Statement{Value: "tea", Explicit: true}
	doc, _ := facts.Merge(nil, said, facts.Origin{Client: "claude", Tool: "remember"}, day1)
	doc, outcome := facts.Merge(doc, said, facts.Origin{Client: "browser", Tool: facts.ToolPages}, day1)
	if f := facts.Read(doc); outcome != facts.Confirmed || !f.ByPerson || f.Client != "browser" || f.Tool != "web" {
		t.Errorf("%s: %s", outcome, doc)
	}
	again, outcome := facts.Merge(doc, said, facts.Origin{Client: "claude", Tool: "remember"}, day1)
	if outcome != facts.Unchanged || string(again) != string(doc) {
		t.Errorf("%s: %s", outcome, again)
	}
	other, _ := facts.Merge(doc, facts.Statement{Value: "coffee", Explicit: true}, facts.Origin{Client: "claude", Tool: "remember"}, day1)
	if f := facts.Read(other); f.ByPerson || f.Client != "claude" {
		t.Errorf("%s", other)
	}
}
