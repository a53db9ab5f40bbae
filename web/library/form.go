package library

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// field is an input of a form.
type field struct {
	ID, Name, Label, Hint, Value string
	Example                      string // shown in the input while it is empty
	Type                         string // text, url, number, list, flag or select
	Mono                         bool   // show the value in a monospaced font
	Wide                         bool   // two fields do not share a row
	Required                     bool
	Max                          int // characters
	Options                      []option
	Wrong                        bool // the problem of the page is about this field
}

type option struct {
	Value, Text string
	Selected    bool
}

// sourceForm is what a person enters about a source that follows an upstream.
type sourceForm struct {
	space.SourceText
	ID        string
	Everybody bool
	Readers   string
	Every     int64
	Kind      space.SourceKind
	Settings  json.RawMessage
}

// Names of form fields that package space does not define.
const (
	fieldAddress = "address" // the address that a person enters to add a source
	fieldEvery   = "every"
)

const defaultEvery = int64(space.SyncEvery / time.Second)

// readForm reads the form that adds or changes a source. The error usually names a field.
func readForm(v *web.Visit, kind space.SourceKindInfo) (sourceForm, error) {
	value := v.R.PostFormValue
	f := sourceForm{
		ID: strings.TrimSpace(value(space.SourceName)), Everybody: value("audience") != "named", Readers: web.Shorten(value(space.SourceReaders), maxReaderText),
		Kind: kind.Kind, Settings: json.RawMessage(value("settings")), Every: defaultEvery,
	}
	for _, t := range f.Fields() {
		*t.Text = value(t.Name)
	}
	var err error
	f.Settings, err = settingsFrom(value, f.Settings, kind.Settings)
	if text := value(fieldEvery); text != "" && err == nil {
		if f.Every, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = fault.Wrap(err, fault.Invalid, "Choose how often the source is updated.").In(fieldEvery)
		}
	}
	return f, err
}

// settingsFrom returns settings with the values of a form. The form has no fields for settings of
// the type [space.SettingOther], so these stay as they are in base.
func settingsFrom(value func(string) string, base json.RawMessage, settings []space.SyncSetting) (json.RawMessage, error) {
	all := map[string]any{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &all); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The form is not complete. Start again with the address.")
		}
	}
	for _, x := range settings {
		text := strings.TrimSpace(value("setting-" + x.Name))
		switch x.Type {
		case space.SettingOther:
			continue
		case space.SettingList:
			var list []string
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					list = append(list, line)
				}
			}
			all[x.Name] = list
		case space.SettingNumber:
			all[x.Name] = 0
			if text != "" {
				n, err := strconv.Atoi(text)
				if err != nil {
					return base, fault.Wrap(err, fault.Invalid, "%s must be a number.", settingLabel(x.Name)).In(x.Name)
				}
				all[x.Name] = n
			}
		case space.SettingFlag:
			all[x.Name] = text == "yes"
		default:
			all[x.Name] = text
		}
		if all[x.Name] == "" || all[x.Name] == 0 || all[x.Name] == false || text == "" {
			delete(all, x.Name)
		}
	}
	return json.Marshal(all)
}

// readers returns the names of the readers in the form.
func (f sourceForm) readers() []string {
	if f.Everybody { // the names count only if not everybody may read
		return nil
	}
	return strings.FieldsFunc(f.Readers, func(c rune) bool { return strings.ContainsRune(",; \n\r\t", c) })
}

// readersField is the input for the names of the readers, if not everybody reads a source.
func readersField(id, value string) field {
	return field{ID: id, Name: space.SourceReaders, Label: "Their user names", Type: "text", Value: value, Hint: "Separated by commas, such as ada, bob. Leave empty for only you."}
}

const aliasesHint = "Separated by commas. A search with one of these names finds the source first."

// formBody is the part of a page with the fields of a source.
type formBody struct {
	Title, Description, Aliases *field
	Name                        *field // nil if the source exists
	Everybody                   bool
	Readers                     field
	Every                       field
	Settings                    []field
	Open                        bool // show the further settings at once
	Kind, Base                  string
}

// bodyOf returns the fields with their values. problem is the error about one of them.
func bodyOf(f sourceForm, kind space.SourceKindInfo, change bool, problem error) *formBody {
	wrong := fault.FieldOf(problem)
	at := func(x field, name string) field {
		x.Wrong = wrong == name && wrong != ""
		return x
	}
	b := &formBody{Everybody: f.Everybody, Kind: string(f.Kind), Base: string(f.Settings)}
	limit := map[string]int{}
	for _, t := range f.Fields() {
		limit[t.Name] = t.Max
	}
	title := at(field{ID: "source-title", Name: "title", Label: "Title", Type: "text", Value: f.Title, Max: limit["title"], Hint: "How people find the source, such as “Nuxt”."}, "title")
	description := at(field{ID: "source-description", Name: "description", Label: "Description", Type: "text", Value: f.Description, Max: limit["description"], Hint: "One sentence that helps an AI decide when to look there."}, "description")
	aliases := at(field{ID: "source-aliases", Name: "aliases", Label: "Other names", Type: "text", Value: f.Aliases, Max: limit["aliases"], Hint: aliasesHint}, "aliases")
	b.Title, b.Description, b.Aliases = &title, &description, &aliases
	if !change {
		name := at(field{ID: "source-name", Name: space.SourceName, Label: "ID", Type: "text", Value: f.ID, Mono: true, Max: 40, Hint: "A short name for commands and addresses. Leave empty to use the title. You cannot change the ID later."}, space.SourceName)
		b.Name = &name
	}
	b.Readers = at(readersField("source-readers", f.Readers), space.SourceReaders)
	b.Every = at(field{ID: "source-every", Name: fieldEvery, Label: "Updates", Type: "select", Options: everyOptions(f.Every), Hint: "Every reader can also update the source at any time."}, fieldEvery)
	values := map[string]any{}
	_ = json.Unmarshal(f.Settings, &values) // if the form sent invalid JSON, the fields are empty
	for _, x := range kind.Settings {
		if x.Type == space.SettingOther {
			continue
		}
		s := at(field{ID: "setting-" + x.Name, Name: "setting-" + x.Name, Label: settingLabel(x.Name), Hint: settingHint(x.Name), Type: string(x.Type), Mono: true, Value: settingText(values[x.Name])}, x.Name)
		s.Wide = x.Name == "url" || x.Name == "urls" || x.Type == space.SettingFlag
		b.Settings = append(b.Settings, s)
	}
	b.Open = b.Every.Wrong || b.Description.Wrong || b.Aliases.Wrong || b.Name != nil && b.Name.Wrong || slices.ContainsFunc(b.Settings, func(s field) bool { return s.Wrong })
	return b
}

// where returns the ID of the input that has the problem; "" if none has.
func (b *formBody) where() string {
	all := append([]field{*b.Title, *b.Description, *b.Aliases, b.Readers, b.Every}, b.Settings...)
	if b.Name != nil {
		all = append(all, *b.Name)
	}
	for _, f := range all {
		if f.Wrong {
			return f.ID
		}
	}
	return ""
}

func everyOptions(now int64) []option {
	var out []option
	choices := []int64{60 * 60, defaultEvery, 24 * 60 * 60, 7 * 24 * 60 * 60, 0}
	if !slices.Contains(choices, now) {
		choices = append([]int64{now}, choices...)
	}
	for _, n := range choices {
		out = append(out, option{strconv.FormatInt(n, 10), everyWords(n), n == now})
	}
	return out
}

func settingText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		if v {
			return "yes"
		}
	case []any:
		var lines []string
		for _, x := range v {
			if text, ok := x.(string); ok {
				lines = append(lines, text)
			}
		}
		return strings.Join(lines, "\n")
	}
	return ""
}

// settingLabel returns the label of a setting. A setting without a label of its own shows its name.
func settingLabel(name string) string {
	switch name {
	case "url":
		return "Address"
	case "urls":
		return "More addresses"
	case "repo":
		return "Repository"
	case "host":
		return "GitHub server"
	case "content_path":
		return "Only this directory"
	case "output_path":
		return "Put the files into"
	case "readme_only":
		return "Only the README"
	case "include":
		return "Read only these paths"
	case "exclude":
		return "Skip these paths"
	case "depth":
		return "Depth of links"
	case "max_pages":
		return "Maximum number of pages"
	}
	text := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

func settingHint(name string) string {
	switch name {
	case "urls":
		return "One address per line, where the documentation begins."
	case "repo":
		return "As owner/name, such as nuxt/nuxt."
	case "branch":
		return "Leave empty for the default branch."
	case "content_path":
		return "Leave empty for all files."
	case "output_path":
		return "A directory of the source. Leave empty for its top."
	case "include":
		return "One pattern per line, such as /guide/**."
	case "exclude":
		return "One pattern per line, such as /blog/**."
	case "depth":
		return "How many links Satchel follows from an address. Leave empty to let Satchel decide."
	case "max_pages":
		return "Leave empty for 1,000."
	}
	return ""
}
