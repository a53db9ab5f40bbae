package conversations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/internal/exports"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
	"satchel/tools/index/evaluate"
)

const (
	// Sessions is how many sessions a collection has.
	Sessions = 200
	seed     = 20261120
)

// Question is a query about a fact.
type Question struct {
	evaluate.Query
	Fact Fact
	// Reworded reports that the question is Fact.Reworded.
	Reworded bool
	// HeldOut marks the half of the questions with which the ranking is never tuned.
	HeldOut bool
}

// Collection holds the sessions and the questions.
type Collection struct {
	Documents []evaluate.Document
	Questions []Question
}

// Queries returns the questions as people ask them, and the same questions reworded.
func (c *Collection) Queries() (asked, reworded []evaluate.Query) {
	for _, q := range c.Questions {
		if q.Reworded {
			reworded = append(reworded, q.Query)
		} else {
			asked = append(asked, q.Query)
		}
	}
	return asked, reworded
}

// session is a conversation before it is written.
type session struct {
	subject string
	day     time.Time
	fact    *Fact  // nil if the session has no fact
	said    string // what the session says about the fact
}

// generator writes sessions.
type generator struct {
	rng     *rand.Rand
	talk    *chatter
	pages   []page // in the order of their paths
	pattern *regexp.Regexp
}

// page is the part of a page of documentation that the assistant quotes.
type page struct{ title, text string }

// Generate returns the collection. pages are Markdown pages of documentation by path.
func Generate(pages map[string][]byte) (*Collection, error) {
	talk, err := readChatter()
	if err != nil {
		return nil, err
	}
	facts, err := Facts()
	if err != nil {
		return nil, err
	}
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), talk: talk, pattern: regexp.MustCompile(`\{([a-z]+)\}`)}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if p, ok := readPage(pages[name]); ok {
			g.pages = append(g.pages, p)
		}
	}
	if len(g.pages) < Sessions {
		return nil, fmt.Errorf("%d pages have enough text, and %d are needed", len(g.pages), Sessions)
	}
	sessions := g.plan(facts)
	export := make([]map[string]any, len(sessions))
	for i, s := range sessions {
		export[i] = g.write(i, s)
	}
	raw, err := json.Marshal(export)
	if err != nil {
		return nil, err
	}
	b, err := exports.Read("conversations.json", exports.Claude, bytes.NewReader(raw), int64(len(raw)), exports.Limits{})
	if err != nil {
		return nil, err
	}
	if len(b.Pages) != len(sessions) {
		return nil, fmt.Errorf("%d sessions became %d pages", len(sessions), len(b.Pages))
	}
	c := &Collection{}
	held := map[*Fact][]string{} // the paths of the sessions that have a fact
	for i, p := range b.Pages {
		path, err := space.ParsePath(p.Path)
		if err != nil {
			return nil, err
		}
		c.Documents = append(c.Documents, evaluate.Document{
			ID: p.Path, Path: path, Size: int64(len(p.Content)),
			Read: func() ([]byte, error) { return p.Content, nil },
		})
		if f := sessions[i].fact; f != nil {
			held[f] = append(held[f], p.Path)
		}
	}
	count := map[string]int{}
	for i := range facts {
		f := &facts[i]
		paths := held[f]
		if f.Type == updatedFact {
			paths = paths[len(paths)-1:]
		}
		grades := evaluate.Grades{}
		for _, p := range paths {
			grades[p] = 1
		}
		for _, text := range []string{f.Question, f.Reworded} {
			c.Questions = append(c.Questions, Question{
				Query: evaluate.Query{ID: text, Text: text, Grades: grades}, Fact: *f, Reworded: text == f.Reworded, HeldOut: count[f.Type]%2 == 1,
			})
		}
		count[f.Type]++
	}
	return c, nil
}

// plan returns all sessions, the oldest first.
func (g *generator) plan(facts []Fact) []session {
	// The sessions of a fact are at random places, but in the order of Said.
	places := g.rng.Perm(Sessions)
	sessions := make([]session, Sessions)
	for i := range facts {
		f := &facts[i]
		mine := slices.Sorted(slices.Values(places[:len(f.Said)]))
		places = places[len(f.Said):]
		for n, at := range mine {
			sessions[at] = session{subject: f.Subject, fact: f, said: f.Said[n]}
		}
	}
	day := time.Date(2025, 1, 6, 18, 0, 0, 0, time.UTC)
	for i := range sessions {
		if sessions[i].fact == nil {
			sessions[i].subject = g.talk.names[i%len(g.talk.names)]
		}
		day = day.AddDate(0, 0, 1+g.rng.IntN(5))
		sessions[i].day = day
	}
	return sessions
}

// write returns a session as Claude exports it.
func (g *generator) write(i int, s session) map[string]any {
	about := g.talk.subjects[s.subject]
	user, assistant := g.shuffled(about.user), g.shuffled(about.assistant)
	turns := 3 + g.rng.IntN(3)
	fact, software := g.rng.IntN(turns), g.rng.IntN(turns)
	var messages []map[string]any
	say := func(sender, text string) {
		messages = append(messages, map[string]any{"sender": sender, "text": text, "created_at": s.day.Format(time.RFC3339)})
	}
	for n := range turns {
		asks, answers := g.fill(user[n%len(user)]), g.fill(assistant[n%len(assistant)])
		if s.fact != nil && n == fact {
			if s.fact.Type == assistantFact {
				answers += " " + s.said
			} else if g.rng.IntN(2) == 0 {
				asks = s.said + " " + asks
			} else {
				asks += " " + s.said
			}
		}
		say("human", asks)
		say("assistant", answers)
		if n == software {
			p := g.pages[(i*7919+g.rng.IntN(50))%len(g.pages)]
			say("human", "Something else for my notes: what does the page “"+p.title+"” say?")
			say("assistant", p.text)
		}
	}
	return map[string]any{
		"uuid": fmt.Sprintf("%08x-%04x-4000-8000-%012x", g.rng.Uint32(), i, g.rng.Uint64()>>16), "name": g.fill(about.titles[g.rng.IntN(len(about.titles))]),
		"created_at": s.day.Format(time.RFC3339), "updated_at": s.day.Format(time.RFC3339), "chat_messages": messages,
	}
}

func (g *generator) shuffled(lines []string) []string {
	lines = slices.Clone(lines)
	g.rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

// fill replaces each name of a list in braces with a random word of the list.
func (g *generator) fill(text string) string {
	return g.pattern.ReplaceAllStringFunc(text, func(name string) string {
		words := g.talk.lists[strings.Trim(name, "{}")]
		return words[g.rng.IntN(len(words))]
	})
}

// leastText and mostText limit the size of the text that a session takes from a page, in bytes.
const leastText, mostText = 300, 1500

// readPage returns the title of a page and its first paragraphs of prose.
func readPage(data []byte) (page, bool) {
	d := frontmatter.ParseLoosely(data)
	title := d.Written("title")
	if len(title) != 1 {
		return page{}, false
	}
	var text []string
	size := 0
	for part := range strings.SplitSeq(string(d.Body), "\n\n") {
		part = strings.TrimSpace(part)
		if len(part) < 60 || strings.ContainsAny(part[:1], "#<`:|-*{>!") || strings.Contains(part, "```") || size+len(part) > mostText {
			continue
		}
		text = append(text, part)
		size += len(part)
	}
	return page{title[0], strings.Join(text, "\n\n")}, size >= leastText
}
