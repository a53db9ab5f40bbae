package web

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Link is a tab, an entry of a menu, or a place of the navigation.
type Link struct {
	Name, URL, Icon string
	Here            bool // whether the link leads to the page that is shown
	Trouble         int  // how many things on the page of the link need attention
}

// Node is a file or directory in the template part "tree".
type Node struct {
	Name, URL string
	Here      bool // whether the page of the node is shown
	Dir       bool
	Open      bool   // whether its children are shown
	Children  []Node // nil if they are not loaded
	More      int    // if not 0, the node is a link to this many more names
}

// partArgs returns the arguments of a template part. pairs are names, each followed by its value.
func partArgs(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("a part got %d values, which are not pairs", len(pairs))
	}
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("a part got %v in place of a name", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}

// partLinks returns the links of a menu or of tabs: triples of a name, an address and an icon.
func partLinks(triples ...string) ([]Link, error) {
	if len(triples)%3 != 0 {
		return nil, fmt.Errorf("links got %d values, which are not triples", len(triples))
	}
	var out []Link
	for i := 0; i < len(triples); i += 3 {
		if triples[i+1] != "" { // a link without an address is left out
			out = append(out, Link{Name: triples[i], URL: triples[i+1], Icon: triples[i+2]})
		}
	}
	return out, nil
}

// initial returns the first letter or digit of a name, in upper case, or "?" if there is none.
func initial(name string) string {
	for _, r := range name {
		if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return string(unicode.ToUpper(r))
		}
	}
	return "?"
}

// capital returns a text that begins with a capital letter.
func capital(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(r)) + text[n:]
}
