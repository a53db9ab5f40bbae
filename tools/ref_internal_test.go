package tools

import (
	"strings"
	"testing"

	"satchel/internal/space"
)

func TestSplitLines(t *testing.T) {
	tests := []struct {
		in       string
		path     string
		from, to int
		ok       bool
	}{
		{"a.md:12-40", "a.md", 12, 40, true},
		{"a.md:12-", "a.md", 12, 0, true},
		{"a.md:12", "a.md", 12, 51, true},
		{"a.md:0", "a.md", 0, 0, true},
		{"a:b:1-2", "a:b", 1, 2, true},
		{"a.md", "", 0, 0, false},
		{"a.md:", "", 0, 0, false},
		{"a.md:-", "", 0, 0, false},
		{"a.md:-4", "", 0, 0, false},
		{"a.md:x", "", 0, 0, false},
		{"a.md:1-x", "", 0, 0, false},
		{"a.md:1-2-3", "", 0, 0, false},
		{"a.md:+1", "", 0, 0, false},
		{"a.md: 1", "", 0, 0, false},
		{"a.md:1234567890", "", 0, 0, false},
		{":1", "", 0, 0, false},
	}
	for _, tt := range tests {
		if p, from, to, ok := splitLines(tt.in); p != tt.path || from != tt.from || to != tt.to || ok != tt.ok {
			t.Errorf("%q: %q, %d, %d, %v", tt.in, p, from, to, ok)
		}
	}
}

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no []string
		root    string
	}{
		{"*.md", []string{"a.md"}, []string{"a/b.md", "a.txt"}, ""},
		{"**", []string{"a", "a/b/c"}, nil, ""},
		{"**/*.md", []string{"a.md", "a/b/c.md"}, []string{"a/b"}, ""},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"b", "a/x", "a/b/c"}, "a"},
		{"a/b/*", []string{"a/b/c"}, []string{"a/b", "a/b/c/d"}, "a/b"},
		{"docs/[a-c]?.md", []string{"docs/ab.md"}, []string{"docs/db.md", "docs/a.md"}, "docs"},
		{"**/x/**", []string{"x", "a/x/b"}, []string{"a/y"}, ""},
	}
	for _, tt := range tests {
		g, err := parseGlob(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if string(g.root()) != tt.root {
			t.Errorf("%s: root %q", tt.pattern, g.root())
		}
		for _, p := range tt.yes {
			if !g.match(space.Path(p)) {
				t.Errorf("%s does not match %s", tt.pattern, p)
			}
		}
		for _, p := range tt.no {
			if g.match(space.Path(p)) {
				t.Errorf("%s matches %s", tt.pattern, p)
			}
		}
	}
	// Attack: a pattern that takes exponential time where each ** is tried alone.
	g, err := parseGlob(strings.Repeat("**/a/", 15) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.match(space.Path(strings.Repeat("a/", 30) + "c")) {
		t.Error("it matches")
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"", "/", ".", "a.md", "/space/a", "/library/a/", "./././a/", "//a", "a//b", "../a", "a:1-2", "a#b", ".git", "/spacex"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseRef(s)
		if err != nil {
			return
		}
		if r.path != "" {
			if _, err := space.ParsePath(r.path); err != nil {
				t.Fatalf("%q gives the path %q: %v", s, r.path, err)
			}
		}
		// Blanks at a name's ends are dropped with those around the whole.
		if again, err := parseRef(r.String()); strings.TrimSpace(r.path) == r.path && (err != nil || again != r) {
			t.Fatalf("%q is %+v, and that is written %q, which is %+v, %v", s, r, r.String(), again, err)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("**/*.md", "a/b.md")
	f.Add("[a-", "a")
	f.Add("a/**/b/**", "a/b")
	f.Fuzz(func(t *testing.T, pattern, p string) {
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		got := g.match(space.Path(p))
		if !isGlob(pattern) && !strings.Contains(pattern, "\\") && got != (pattern == p) {
			t.Fatalf("%q matches %q: %v", pattern, p, got)
		}
		if root := string(g.root()); got && root != "" && !strings.Contains(root, "\\") && p != root && !strings.HasPrefix(p, root+"/") {
			t.Fatalf("%q matches %q outside of its root %q", pattern, p, root)
		}
	})
}

func FuzzClipTokens(f *testing.F) {
	f.Add("some words\non lines", 3)
	f.Add(strings.Repeat("é", 100), 7)
	f.Add(strings.Repeat(" ", 1000), 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		head, cut := clipTokens(s, n%1000)
		if !strings.HasPrefix(s, head) || cut == (len(head) == len(s)) && len(s) > 0 {
			t.Fatalf("%q cut to %q, %v", s, head, cut)
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"query", "limit", "source", "since", "max_tokens"}
	for in, want := range map[string]string{
		"querry": "query", "Query": "query", "max_token": "max_tokens", "maxTokens": "max_tokens", "sorce": "source", "lim": "limit", "q": "", "regex": "", "": "",
	} {
		if got := nearest(in, known); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestShare(t *testing.T) {
	tests := []struct {
		needs  []int
		budget int
		want   []int
	}{
		{[]int{10, 10}, 100, []int{10, 10}},
		{[]int{1000, 10}, 100, []int{90, 10}},
		{[]int{1000, 1000, 10}, 110, []int{50, 50, 10}},
		{[]int{0, 5}, 3, []int{0, 3}},
		{nil, 10, []int{}},
	}
	for _, tt := range tests {
		got := share(tt.needs, tt.budget)
		for i := range tt.want {
			if got[i] != tt.want[i] {
				t.Errorf("%v of %d: %v, want %v", tt.needs, tt.budget, got, tt.want)
				break
			}
		}
	}
}
