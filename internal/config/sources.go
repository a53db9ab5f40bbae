package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"satchel/internal/fault"
)

// SyncedSource is an entry of sources: a source that follows an upstream.
type SyncedSource struct {
	ID, Kind           string
	Title, Description string
	Aliases            string // separated by commas
	// Everybody lets everybody on the server read the source. Otherwise only the users whose names
	// are in Readers can.
	Everybody bool
	Readers   []string
	// Every is the interval between syncs. Nil means the default. 0 means on request only.
	Every *time.Duration
	// Settings are the settings of the kind, as a JSON object.
	Settings json.RawMessage
}

// sourcesKey is the key of the list of sources.
const sourcesKey = "sources"

// maxSources limits the entries of sources.
const maxSources = 1000

// entryKey is a key of an entry of sources, for the reference.
type entryKey struct{ name, value, def, doc string }

func entryKeys() []entryKey {
	return []entryKey{
		{"id", "text", "required", "The name of the source in `/library/docs/ID`, unique on the server."},
		{"kind", "text", "required", "The kind of upstream, such as `github`, `git` or `web`."},
		{"title", "text", "the id", "The name that people see."},
		{"description", "text", "empty", "A sentence that says when an AI should look there."},
		{"aliases", "text, list", "empty", "Other names that people use for the source. A search with one of them finds the source first."},
		{"audience", "`everyone`, list", "`everyone`", "The user names of those who can read the source."},
		{"every", "duration", "`6h`", "The interval between updates, from `5m` to `30d`; `0` for updates on request only."},
		{"paused", "true, false", "`false`", "Whether the source is updated on request only, whatever `every` says."},
	}
}

// LoadSources reads a configuration file, and returns only its sources. The error is like that of
// Load.
func LoadSources(file string, check func(SyncedSource) (known []string, err error)) ([]SyncedSource, error) {
	l := &loader{src: Source{CheckSource: check}, env: map[string]string{}, origin: map[string]string{}, spoilt: map[string]bool{}}
	l.keys = keys(&l.cfg)
	l.readFile(file)
	if len(l.mistakes) > 0 {
		return nil, fault.Wrap(l.mistakes, fault.Invalid, "%s", l.mistakes.Error())
	}
	return l.cfg.Sources, nil
}

// sources reads the list of entries.
func (l *loader) sources(name string, v *yaml.Node) {
	if v.Kind != yaml.SequenceNode {
		if v.ShortTag() != "!!null" { // a list whose entries are all comments is valid
			l.mistake(place(name, v), "sources must be a list of entries, such as %q", "- {id: nuxt, kind: github, repo: nuxt/nuxt}")
		}
		return
	}
	if len(v.Content) > maxSources {
		l.mistake(place(name, v), "sources has %d entries, and %d are allowed", len(v.Content), maxSources)
		return
	}
	lines := map[string]int{}
	for _, item := range v.Content {
		e, ok := l.entry(name, item)
		if line := lines[e.ID]; line > 0 {
			l.mistake(place(name, item), "sources: the id %q is there already, in line %d", e.ID, line)
			continue
		}
		if e.ID != "" {
			lines[e.ID] = item.Line
		}
		if ok {
			l.cfg.Sources = append(l.cfg.Sources, e)
		}
	}
}

// entry reads one entry. ok is false if it has a mistake.
func (l *loader) entry(name string, v *yaml.Node) (e SyncedSource, ok bool) {
	before := len(l.mistakes)
	if v.Kind != yaml.MappingNode || v.Anchor != "" {
		l.mistake(place(name, v), "sources: an entry must be keys and values, such as %q", "{id: nuxt, kind: github, repo: nuxt/nuxt}")
		return e, false
	}
	e.Everybody = true
	paused := false
	settings := map[string]any{}
	at := map[string]*yaml.Node{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		k, value := v.Content[i], v.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			l.mistake(place(name, k), "sources: a key must be a plain word")
			continue
		}
		if first := at[k.Value]; first != nil {
			l.mistake(place(name, k), "sources: %.80s is there already, in line %d", k.Value, first.Line)
			continue
		}
		at[k.Value] = k
		plain, err := plainValue(value)
		if err == nil {
			err = e.set(k.Value, plain, &paused, settings)
		}
		if err != nil {
			l.mistake(place(name, value), "sources: %.80s: %s", k.Value, err)
		}
	}
	if paused {
		e.Every = new(time.Duration)
	}
	if len(l.mistakes) > before {
		return e, false
	}
	if e.ID == "" {
		l.mistake(place(name, v), "sources: the entry needs an id")
		return e, false
	}
	var err error
	if e.Settings, err = json.Marshal(settings); err != nil {
		l.mistake(place(name, v), "sources: %s: the settings cannot be read", e.ID)
		return e, false
	}
	l.checkEntry(name, v, e, at, settings)
	return e, len(l.mistakes) == before
}

// checkEntry checks the keys of an entry's kind.
func (l *loader) checkEntry(name string, v *yaml.Node, e SyncedSource, at map[string]*yaml.Node, settings map[string]any) {
	if l.src.CheckSource == nil {
		return
	}
	known, err := l.src.CheckSource(e)
	if known != nil {
		for _, k := range entryKeys() {
			known = append(known, k.name)
		}
		unknown := false
		for i := 0; i+1 < len(v.Content); i += 2 {
			k := v.Content[i]
			if _, ours := settings[k.Value]; ours && !slices.Contains(known, k.Value) {
				unknown = true
				l.unknown(place(name, k), fmt.Sprintf("key %.80q in a source of the kind %s", k.Value, e.Kind), nearest(k.Value, known))
			}
		}
		if unknown {
			return
		}
	}
	if err == nil {
		return
	}
	where := v
	if k := at[fault.FieldOf(err)]; k != nil {
		where = k
	}
	l.mistake(place(name, where), "sources: %s: %s", e.ID, strings.TrimSuffix(fault.PublicOf(err), "."))
}

// set sets one key. A key that is not in entryKeys is a setting of the kind.
func (e *SyncedSource) set(key string, v any, paused *bool, settings map[string]any) error {
	text := func(to *string) error {
		s, ok := v.(string)
		if !ok || s == "" {
			return errText
		}
		*to = s
		return nil
	}
	switch key {
	case "id":
		return text(&e.ID)
	case "kind":
		return text(&e.Kind)
	case "title":
		return text(&e.Title)
	case "description":
		return text(&e.Description)
	case "aliases":
		list, ok := v.([]any)
		if !ok {
			return text(&e.Aliases)
		}
		names := make([]string, len(list))
		for i := range list {
			if names[i], ok = list[i].(string); !ok || names[i] == "" {
				return errText
			}
		}
		e.Aliases = strings.Join(names, ", ")
		return nil
	case "audience":
		return e.setAudience(v)
	case "every":
		d, err := ParseDuration(fmt.Sprint(v))
		if err != nil {
			return err
		}
		e.Every = &d
	case "paused":
		b, ok := v.(bool)
		if !ok {
			return errBool
		}
		*paused = b
	default:
		settings[key] = v
	}
	return nil
}

const everyone = "everyone"

func (e *SyncedSource) setAudience(v any) error {
	if v == everyone {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		return errAudience
	}
	e.Everybody, e.Readers = false, []string{}
	for _, item := range list {
		s, ok := item.(string)
		if !ok || s == "" {
			return errAudience
		}
		e.Readers = append(e.Readers, s)
	}
	return nil
}

// formError is an error that says which form a value must have.
type formError string

func (e formError) Error() string { return string(e) }

const (
	errText     = formError("it must be a text")
	errBool     = formError("it must be true or false")
	errAudience = formError("it must be everyone, or a list of user names")
	errPlain    = formError("anchors, aliases and tags are not used in a configuration; write the value")
	errEmpty    = formError("it has no value; take the line out")
	errTwice    = formError("it has a key twice, or a key that is not a plain word")
)

// plainValue returns a node as texts, numbers, booleans, lists and maps. The decoder limits how
// deep nodes are nested.
func plainValue(v *yaml.Node) (any, error) {
	switch {
	case v.Kind == yaml.AliasNode || v.Anchor != "" || v.Style&yaml.TaggedStyle != 0:
		return nil, errPlain
	case v.Kind == yaml.SequenceNode:
		list := []any{}
		for _, item := range v.Content {
			x, err := plainValue(item)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	case v.Kind == yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i+1 < len(v.Content); i += 2 {
			k := v.Content[i]
			if _, twice := all[k.Value]; twice || k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				return nil, errTwice
			}
			x, err := plainValue(v.Content[i+1])
			if err != nil {
				return nil, err
			}
			all[k.Value] = x
		}
		return all, nil
	}
	switch v.ShortTag() {
	case "!!null":
		return nil, errEmpty
	case "!!int", "!!float", "!!bool":
		var x any
		err := v.Decode(&x)
		return x, err
	}
	return v.Value, nil // other scalars, such as dates, are texts here
}
