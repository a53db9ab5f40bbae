package index

import (
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
)

// A query that names one of several sources finds that source's page first, and a page in
// another source about the named one stays findable.
func TestAQueryNamesASource(t *testing.T) {
	x := openIndex(t, Options{})
	for id, files := range map[string]map[string]string{
		"mine":    {"a.md": "# Sails\n\nHow we mend a torn sail.\n"},
		"harbour": {"mend.md": "# Mend a torn sail\n\nUse the needle of the harbour.\n", "rope.md": "# Ropes\n\nA rope of hemp.\n"},
		"keel":    {"mend.md": "# Mend a torn sail\n\nUse the wax and the thread.\n", "moving.md": "# Moving from harbour\n\nTake the harbour with you.\n"},
	} {
		h := newHistory()
		h.commit(toBytes(files))
		if err := x.Update(t.Context(), space.SpaceID(id), h); err != nil {
			t.Fatal(err)
		}
	}
	all := []Collection{
		{ID: "mine", Label: "space"},
		{ID: "harbour", Label: "harbour", Mount: "/library/docs/harbour", Names: []string{"The Harbour Book"}},
		{ID: "keel", Label: "keel", Mount: "/library/docs/keel", Names: []string{"Keel 2"}},
	}
	for query, first := range map[string]string{
		"mend a torn sail harbour":                 "/library/docs/harbour/mend.md",
		"mend a torn sail keel":                    "/library/docs/keel/mend.md",
		"mend a torn sail in keel.js":              "/library/docs/keel/mend.md",
		"mend a torn sail with Keel 2":             "/library/docs/keel/mend.md",
		"the harbour book: how to mend torn sails": "/library/docs/harbour/mend.md",
		"moving from harbour":                      "/library/docs/keel/moving.md",
	} {
		r, err := x.Search(t.Context(), all, Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Hits) == 0 || r.Hits[0].Path != first {
			t.Errorf("%q finds %v, want %s first", query, paths(r), first)
		}
	}
	r, err := x.Search(t.Context(), all, Query{Text: "torn sail keel"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Notes {
		t.Errorf("a name that no page has causes the note %q", n)
	}
}

// Of the same page in sources of several versions, that of the newest version is shown, and that of a
// source that the query names.
func TestTheNewestVersionOfAPageInSeveralSources(t *testing.T) {
	x := openIndex(t, Options{})
	page := "# Mend a torn sail\n\nUse the needle, the wax and the long thread, fold the edges twice, and sew slowly from the middle to each side of the sail.\n"
	var all []Collection
	for _, c := range []Collection{{ID: "rig-2", Version: "2"}, {ID: "rig-10", Version: "10.1"}, {ID: "rig-9", Version: "9"}} {
		h := newHistory()
		h.commit(toBytes(map[string]string{"mend.md": page, string(c.ID) + ".md": "# Notes\n\nOther pages.\n"}))
		if err := x.Update(t.Context(), c.ID, h); err != nil {
			t.Fatal(err)
		}
		c.Label, c.Mount = string(c.ID), "/library/docs/"+string(c.ID)
		all = append(all, c)
	}
	for query, first := range map[string]string{
		"mend a torn sail":       "/library/docs/rig-10/mend.md",
		"mend a torn sail rig-2": "/library/docs/rig-2/mend.md",
	} {
		r, err := x.Search(t.Context(), all, Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		shown := slices.DeleteFunc(paths(r), func(p string) bool { return !strings.HasSuffix(p, "/mend.md") })
		if !slices.Equal(shown, []string{first}) {
			t.Errorf("%q finds %v, want %s", query, shown, first)
		}
	}
}
