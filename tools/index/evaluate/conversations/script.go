package conversations

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed facts.txt
var factsText string

//go:embed chatter.txt
var chatterText string

// Fact is a statement in one session or several.
type Fact struct {
	// Type is a type of question in LongMemEval. Subject is what the sessions are about.
	Type, Subject string
	// Said holds what each session says, the oldest first.
	Said []string
	// Question asks for the fact with its main words, and Reworded avoids them.
	Question, Reworded, Answer string
}

// Types of facts that are treated differently.
const (
	assistantFact = "single-session-assistant" // the assistant says it
	updatedFact   = "knowledge-update"         // only the newest session is right
)

// Facts returns all facts.
func Facts() ([]Fact, error) {
	var all []Fact
	for line := range strings.Lines(factsText) {
		line = strings.TrimSpace(line)
		mark, text, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case strings.Contains("+?~=", mark):
			f := &all[len(all)-1]
			switch mark {
			case "+":
				f.Said = append(f.Said, text)
			case "?":
				f.Question = text
			case "~":
				f.Reworded = text
			case "=":
				f.Answer = text
			}
		default:
			kind, subject, ok := strings.Cut(strings.TrimSuffix(mark, ":"), "/")
			if !ok {
				return nil, fmt.Errorf("facts.txt: %q has no type and subject", line)
			}
			all = append(all, Fact{Type: kind, Subject: subject, Said: []string{text}})
		}
	}
	return all, nil
}

// subject is what people talk about in a session.
type subject struct{ titles, user, assistant []string }

// chatter holds the talk of all subjects, and the lists of words that vary it.
type chatter struct {
	subjects map[string]*subject
	names    []string // the names of the subjects, in the order of the file
	lists    map[string][]string
}

func readChatter() (*chatter, error) {
	c := &chatter{subjects: map[string]*subject{}, lists: map[string][]string{}}
	var at *subject
	for line := range strings.Lines(chatterText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			name := strings.Trim(line, "[]")
			at = &subject{}
			c.subjects[name] = at
			c.names = append(c.names, name)
			continue
		}
		key, text, ok := strings.Cut(line, ": ")
		switch {
		case !ok:
			return nil, fmt.Errorf("chatter.txt: %q has no key", line)
		case at == nil:
			c.lists[key] = strings.Split(text, ", ")
		case key == "title":
			at.titles = append(at.titles, text)
		case key == "user":
			at.user = append(at.user, text)
		case key == "assistant":
			at.assistant = append(at.assistant, text)
		default:
			return nil, fmt.Errorf("chatter.txt: %q is not a key", key)
		}
	}
	return c, nil
}
