package api

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// InLibrary exports inLibrary for tests.
func InLibrary(p string) (string, error) { return inLibrary(p) }

// Routes lists the routes with their scopes, such as "read GET /api".
func (s *Server) Routes() []string {
	var list []string
	for _, r := range s.routes {
		list = append(list, strings.TrimSpace(string(r.scope)+" "+r.method+" "+r.path))
	}
	return list
}

// Table returns the routes as a table in Markdown.
func (s *Server) Table() string {
	var b strings.Builder
	b.WriteString("| request | scope | what it does | answer |\n| --- | --- | --- | --- |\n")
	for _, r := range s.routes {
		answer := "the document"
		if r.out != nil {
			answer = "`" + outline(r.out) + "`"
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s |\n", r.method, r.path, cmp.Or(string(r.scope), "none"), r.summary, answer)
	}
	return b.String()
}

// outline returns the names of the fields of a struct, and of the structs in it.
func outline(t reflect.Type) string {
	return "{" + strings.Join(names(t), ", ") + "}"
}

func names(t reflect.Type) (list []string) {
	for f := range t.Fields() {
		if f.Anonymous {
			list = append(list, names(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			name = "…"
		}
		form, of := "%s", f.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				form = "[%s]"
			}
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct && name != "…" {
			name += ": " + fmt.Sprintf(form, outline(of))
		}
		list = append(list, name)
	}
	return list
}

// MatchesOf returns the matches of a result as "LINE CONTENT".
func MatchesOf(query, lines, snippet string) []string {
	var out []string
	for _, m := range wordsOf(query).matches(resultView{Lines: lines, Snippet: snippet}) {
		out = append(out, fmt.Sprintf("%d %s", m.Line, m.Content))
	}
	return out
}
