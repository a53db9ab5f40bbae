package libraries

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/space"
	"satchel/tools/index/evaluate"
	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// Kind says where a question comes from.
type Kind string

const (
	// Heading questions are the heading of a section, followed by the title of its page if the
	// heading is short.
	Heading Kind = "heading"
	// Sentence questions are the first sentence of a section. Generate removes it from the page.
	Sentence Kind = "sentence"
	// Trouble questions are an error message, or a sentence about a problem. Generate removes
	// the sentence from the page, but not the message.
	Trouble Kind = "trouble"
	// Foreign questions are like Sentence questions, from pages in other languages than
	// English.
	Foreign Kind = "foreign"
	// Named questions are Heading questions with the name of the library.
	Named Kind = "named"
)

// perLibrary is the maximum number of questions of a kind about one library.
var perLibrary = map[Kind]int{Heading: 100, Sentence: 100, Trouble: 40, Foreign: 100, Named: 40}

// Question is a question with the pages that answer it. It has several pages if they share the
// text from which the question was made.
type Question struct {
	Kind    Kind
	Text    string
	Answers []Answer
	// HeldOut marks the half of the questions with which the ranking is never tuned.
	HeldOut bool
}

// Answer is a section of a page.
type Answer struct {
	Library string
	Page    string // the page's path as hits show it
	Lines   [2]int // first and last line of the message, or of the section without its subsections
}

// Collection holds the libraries, without the sentences that became questions, and the
// questions.
type Collection struct {
	Libraries []evaluate.Library
	Questions []Question
}

// Library is the pages of one library by path.
type Library struct {
	Name  string
	Pages map[string][]byte
}

// candidate is a text that may become a question.
type candidate struct {
	kind    Kind
	text    string
	library string
	at      []place
}

// place is where a candidate's text is.
type place struct {
	page string
	cut  *sentence // the sentence to remove from the page; nil: none
	in   [2]int
}

// Generate returns the questions about libraries.
func Generate(libraries []Library) (*Collection, error) {
	c := &Collection{}
	for _, l := range libraries {
		chosen := choose(candidates(l))
		cuts := map[string][]sentence{}
		for _, q := range chosen {
			one := Question{Kind: q.kind, Text: q.text, HeldOut: hash(q.text)>>40%2 == 1}
			for _, at := range q.at {
				one.Answers = append(one.Answers, Answer{l.Name, path.Join(space.SourcesMount, l.Name, at.page), at.in})
				if at.cut != nil {
					cuts[at.page] = append(cuts[at.page], *at.cut)
				}
			}
			c.Questions = append(c.Questions, one)
		}
		lib := evaluate.Library{Name: l.Name}
		for _, name := range slices.Sorted(maps.Keys(l.Pages)) {
			p, err := space.ParsePath(name)
			if err != nil {
				return nil, err
			}
			cut := cuts[name]
			slices.SortFunc(cut, func(a, b sentence) int { return cmp.Compare(a.start, b.start) })
			cut = slices.CompactFunc(cut, func(a, b sentence) bool { return a.start == b.start })
			page := without(l.Pages[name], cut)
			lib.Documents = append(lib.Documents, evaluate.Document{
				ID: path.Join(space.SourcesMount, l.Name, name), Path: p, Size: int64(len(page)),
				Read: func() ([]byte, error) { return page, nil },
			})
		}
		c.Libraries = append(c.Libraries, lib)
	}
	if len(c.Questions) == 0 {
		return nil, fmt.Errorf("the pages of %d libraries give no questions", len(libraries))
	}
	return c, nil
}

// candidates returns everything in a library that may become a question.
func candidates(l Library) []candidate {
	at := map[string]int{}
	var all []candidate
	add := func(kind Kind, text string, where place) {
		key := string(kind) + "\x00" + text
		i, there := at[key]
		if !there {
			i = len(all)
			at[key] = i
			all = append(all, candidate{kind: kind, text: text, library: l.Name})
		}
		all[i].at = append(all[i].at, where)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Pages)) {
		page := l.Pages[name]
		lang, _ := language.OfPath(name)
		english := lang == "" || language.Base(lang) == "en"
		title := plain(parse.Title(name, page))
		sections := parse.Sections(name, page)
		for i, s := range sections {
			heading := plain(s.Title)
			if !english || s.Level < 2 || s.Level > 3 || strings.EqualFold(heading, title) {
				continue
			}
			own := [2]int{s.From, s.To}
			if i+1 < len(sections) {
				own[1] = min(own[1], max(s.From, sections[i+1].From-1))
			}
			text := unnamed(heading, l.Name)
			if topical(text) < 3 {
				text = unnamed(heading+" "+title, l.Name)
			}
			if topical(text) >= 3 {
				add(Heading, text, place{page: name, in: own})
				add(Named, text+" "+l.Name, place{page: name, in: own})
			}
		}
		for _, s := range sentences(name, page) {
			in := [2]int{s.section.From, s.section.To}
			for _, other := range sections {
				if other.From > in[0] {
					in[1] = min(in[1], max(in[0], other.From-1))
					break
				}
			}
			text := unnamed(s.text, l.Name)
			switch n := topical(text); {
			case n < 5 || n > 30 || strings.HasSuffix(text, ":"): // a colon introduces code or a list
			case english && problem.MatchString(text):
				add(Trouble, text, place{page: name, cut: &s, in: in})
			case s.first && english:
				add(Sentence, text, place{page: name, cut: &s, in: in})
			case s.first:
				add(Foreign, text, place{page: name, cut: &s, in: in})
			}
		}
		if !english {
			continue
		}
		for _, m := range messages.FindAllSubmatchIndex(page, -1) {
			if m[2] < 0 {
				m[2], m[3] = m[4], m[5]
			}
			line := 1 + strings.Count(string(page[:m[0]]), "\n")
			text := unnamed(placeholder.ReplaceAllString(plain(string(page[m[2]:m[3]])), " "), l.Name)
			if topical(text) >= 3 {
				add(Trouble, text, place{page: name, in: [2]int{line, line}})
			}
		}
	}
	return all
}

var (
	// problem matches sentences about something that goes wrong.
	problem = regexp.MustCompile(`(?i)\b(errors? (?:when|if|about|like|saying)|throws?|fails? (?:to|with|when|if|because)|failing|crash\w*|mismatch\w*|not work\w*|n't work\w*|not found|unexpected\w*|broken|breaks|stuck|hangs|leaks?|unable to|missing|flash of|timed? ?out|conflicts? with|warning (?:about|when|if))\b`)
	// messages matches error messages: quoted after a bold name, as in a reference of errors, or
	// in the form in which a program prints them.
	messages = regexp.MustCompile("(?m)^(?:> \\*\\*[A-Za-z]+\\*\\*: ([^\\n.]{20,160})|[ \\t`\\-*]*(?:[A-Z]\\w*Error|\\[[a-z]+\\] \\[[a-z]+\\]): ?([^\\n`]{20,160}))")
	// placeholder matches a word such as COMPONENT_NAME that stands for a name in a message.
	placeholder = regexp.MustCompile(`\b[A-Z]+(?:_[A-Z]+)+\b`)
)

// unnamed returns a text without the words that contain the name of a library.
func unnamed(text, name string) string {
	var kept []string
	for _, w := range strings.Fields(text) {
		if !strings.Contains(strings.ToLower(w), name) {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// topical returns how many different words of a text are not stop words.
func topical(text string) int {
	seen := map[string]bool{}
	parse.NewAnalyzer().Words(text, func(w parse.Word) {
		if raw := strings.ToLower(text[w.Start:w.End]); !language.IsStop(raw) {
			seen[w.Term] = true
		}
	})
	return len(seen)
}

// choose returns the candidates that become questions, at most perLibrary of each kind. Their
// order does not depend on the order of the pages.
func choose(all []candidate) (chosen []candidate) {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(hash(a.text), hash(b.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.kind, b.kind))
	})
	count := map[Kind]int{}
	for _, c := range all {
		if count[c.kind] < perLibrary[c.kind] && len(c.at) <= maxAnswers {
			count[c.kind]++
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// maxAnswers is how many pages may share a text that becomes a question: a sentence that many
// pages have is not about any of them.
const maxAnswers = 4

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
