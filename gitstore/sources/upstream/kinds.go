package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"satchel/internal/editdistance"
	"satchel/internal/fault"
)

// Kinds returns every kind, in the order in which Recognize asks them.
func Kinds() []Kind {
	return []Kind{
		gitHubKind(),
		gitKind(),
		{Name: YouTube, Title: "YouTube channel or playlist", New: func() Upstream { return &youTube{} }, Recognize: recognizeYouTube},
		{Name: "openapi", Title: "OpenAPI document", New: func() Upstream { return &openAPI{} }, Recognize: recognizeOpenAPI},
		{Name: "feed", Title: "Feed", New: func() Upstream { return &feed{} }, Recognize: recognizeFeed},
		uploadKind(),
		directoryKind(),
		{Name: "web", Title: "Web site", New: newWeb, Recognize: recognizeWeb}, // recognizes every https address, so it must be the last kind
	}
}

// Open returns the upstream with a kind and settings, which are a JSON object. The error is a
// fault.Invalid that names the wrong setting, if it is known.
func Open(kind string, settings []byte) (Upstream, error) {
	k, err := named(kind)
	if err != nil {
		return nil, err
	}
	u := k.New()
	if err := decode(settings, u); err != nil {
		return nil, err
	}
	return u, u.Validate()
}

// At returns the upstream of a kind at an address, with defaults. The error is a fault.Invalid
// that names the field "kind" or "url".
func At(kind, address string) (Upstream, error) {
	k, err := named(kind)
	if err != nil {
		return nil, err
	}
	address = strings.TrimSpace(address)
	at, err := pasted(address)
	if local, perr := url.Parse(address); err != nil && kind == "git" && perr == nil {
		at, err = local, nil // git also reads paths of this machine
	}
	if err != nil {
		return nil, err
	}
	if k.Recognize != nil {
		if found := k.Recognize(at); found != nil {
			return found, nil
		}
	}
	u := k.New()
	if kind != "git" || !strings.HasPrefix(address, "/") {
		address = at.String()
	}
	if !slices.Contains(Settings(u), "url") {
		return nil, fault.New(fault.Invalid, "The kind %s does not read this address.", kind).In("url")
	}
	settings, err := json.Marshal(map[string]string{"url": address})
	if err != nil {
		return nil, err
	}
	return u, decode(settings, u)
}

// named returns the kind with a name.
func named(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fault.New(fault.Invalid, "There is no kind of source %q. The kinds are %s.", name, strings.Join(names, ", ")).In("kind")
}

// pasted reads an address that a person pasted, with or without https://.
func pasted(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, fault.New(fault.Invalid, "This is not an address. Paste one such as https://docs.example.com/.").In("url")
	}
	return u, nil
}

// Recognize returns the kind of a URL that a person pasted, and its settings with defaults.
func Recognize(address string) (Kind, Upstream, error) {
	u, err := pasted(strings.TrimSpace(address))
	if err != nil {
		return Kind{}, nil, err
	}
	for _, k := range Kinds() {
		if k.Recognize == nil {
			continue
		}
		if found := k.Recognize(u); found != nil {
			return k, found, found.Validate()
		}
	}
	return Kind{}, nil, fault.New(fault.Invalid, "No kind of source reads this address.").In("url")
}

// decode reads settings strictly: an unknown key is an error, which suggests a similar known key.
func decode(settings []byte, u Upstream) error {
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(settings, &given); err != nil {
		return fault.Wrap(err, fault.Invalid, "The settings of a source must be an object.")
	}
	known := Settings(u)
	for name := range given {
		if !slices.Contains(known, name) {
			e := fault.New(fault.Invalid, "There is no setting %q.", name)
			if near := editdistance.Nearest(name, known); near != "" {
				e = fault.New(fault.Invalid, "There is no setting %q. Did you mean %q?", name, near)
			}
			return e.In(name)
		}
	}
	err := json.Unmarshal(settings, u)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fault.Wrap(err, fault.Invalid, "The setting %s has the wrong type.", wrong.Field).In(wrong.Field)
	}
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "The settings of the source cannot be read.")
	}
	return nil
}

// Settings returns the names of an upstream's settings.
func Settings(u Upstream) []string {
	var names []string
	for _, f := range fieldsOf(reflect.TypeOf(u).Elem()) {
		names = append(names, f.Name)
	}
	return names
}
