package index

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// The order of matches if they differ in only one respect.
func TestRanking(t *testing.T) {
	filler := func(n int) string { return strings.Repeat("Other things are told here at some length. ", n) }
	for _, c := range []struct {
		name  string
		query string
		files map[string]string
		order []string // the order of the named paths; other paths may be anywhere
	}{
		{"a title beats a body", "ballast", map[string]string{
			"a.md": "# Keel\n\nThe ballast is under the floor. " + filler(3),
			"b.md": "# Ballast\n\nIt is under the floor. " + filler(3),
		}, []string{"b.md", "a.md"}},
		{"a heading beats a body", "ballast", map[string]string{
			"a.md": "# Keel\n\n## Floor\n\nThe ballast is here. " + filler(3),
			"b.md": "# Keel two\n\n## Ballast\n\nThe floor is here. " + filler(3),
		}, []string{"b.md", "a.md"}},
		{"neighbouring words beat scattered ones", "trim valve", map[string]string{
			"a.md": "# One\n\nThe trim of the boat depends on the load, and no pump is without its valve. " + filler(2),
			"b.md": "# Two\n\nThe load of the boat depends on the pump, and no boat is without a trim valve. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"all words beat one that comes often", "anchor winch brake", map[string]string{
			"a.md": "# One\n\nWinch, winch, winch and winch: a winch is a winch. " + filler(2),
			"b.md": "# Two\n\nThe anchor hangs on a winch that has a brake. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"an identifier as a whole beats its parts", "useTideTable", map[string]string{
			"a.md": "# Tables\n\nUse a table for the tide: tide tables are of use. " + filler(2),
			"b.md": "# Hooks\n\nCall useTideTable in a component. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"an identifier is found by its words", "use tide table", map[string]string{
			"a.md": "# Tables\n\nUse this for a tide, and a table. " + filler(2),
			"b.md": "# useTideTable\n\nIt returns a promise. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"letter by letter beats another form", "useTideTable", map[string]string{
			"a.md": "# useTideTables\n\nIt returns a promise. " + filler(2),
			"b.md": "# useTideTable\n\nIt returns a promise. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"a short text beats a long one with as many matches", "mooring", map[string]string{
			"a.md": "# One\n\nA mooring. " + filler(30),
			"b.md": "# Two\n\nA mooring. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"a heading counts that is not above the best passage", "trim valve", map[string]string{
			"a.md": "# One\n\n" + strings.Repeat("A trim valve and a valve to trim. ", 25) + filler(60) + "\n\n## Trim valve\n\n" + filler(60),
			"b.md": "# Two\n\n" + strings.Repeat("A trim valve and a valve to trim. ", 25),
		}, []string{"a.md", "b.md"}},
		{"a rare word weighs more than a frequent one", "harbour quadrant", map[string]string{
			"a.md": "# One\n\nThe harbour. " + filler(2), "b.md": "# Two\n\nThe quadrant. " + filler(2),
			"c.md": "# Three\n\nThe harbour. " + filler(2), "d.md": "# Four\n\nThe harbour. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"a directory that the query names counts", "rigging in the harbour guide", map[string]string{
			"sea/a.md":     "# Rigging\n\nRopes. " + filler(2),
			"harbour/b.md": "# Rigging\n\nRopes. " + filler(2),
		}, []string{"harbour/b.md", "sea/a.md"}},
		{"a sentence finds the page that begins with it", "how a ship keeps its ballast dry", map[string]string{
			"a.md": "# One\n\n" + filler(60) + "\n\n## Details\n\nThe ship keeps its ballast dry. " + filler(60),
			"b.md": "# Two\n\nThe ship keeps its ballast dry. " + filler(60) + "\n\n## Details\n\n" + filler(60),
		}, []string{"b.md", "a.md"}},
		{"in a conversation, words of one remark beat words of several", "which harbour did we reach in the fog", map[string]string{
			"a.md": "---\ntype: conversation\n---\n# Talk\n\n## User\n\nThe harbour is full. " + filler(8) + "\n\n## Claude\n\nFog is rare. " + filler(8) + "We can reach it.\n",
			"b.md": "---\ntype: conversation\n---\n# Talk\n\n## User\n\n" + filler(8) + "\n\n## Claude\n\n" + filler(8) + "In such rare fog a full boat can reach, with some luck, the harbour.\n",
		}, []string{"b.md", "a.md"}},
		{"the first paragraph beats a later one of the same passage", "how a ship keeps its ballast dry", map[string]string{
			"a.md": "# One\n\n" + filler(20) + "\n\nThe ship keeps its ballast dry.",
			"b.md": "# Two\n\nThe ship keeps its ballast dry.\n\n" + filler(20),
		}, []string{"b.md", "a.md"}},
		{"what begins a page beats what follows soon", "how a ship keeps its ballast dry", map[string]string{
			"a.md": "# One\n\n" + filler(6) + "\n\nThe ship keeps its ballast dry.\n\n" + filler(2),
			"b.md": "# Two\n\nThe ship keeps its ballast dry.\n\n" + filler(8),
		}, []string{"b.md", "a.md"}},
		{"what a reader asks for is not what the page is about", "An introduction to the lanterns of ships", map[string]string{
			"a.md": "# Introduction\n\nAn introduction to ships. " + filler(2),
			"b.md": "# Lanterns\n\nThey hang on ships. " + filler(2),
			"c.md": "# Oil\n\nOil for lanterns. " + filler(2), "d.md": "# Wick\n\nWicks for lanterns. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"but the words of a short query are", "introduction ship", map[string]string{
			"a.md": "# Introduction\n\nShip. " + filler(2),
			"b.md": "# Ship\n\nShip. " + filler(2),
		}, []string{"a.md", "b.md"}},
		{"a word is found by its short form", "where the harbour env is set", map[string]string{
			"a.md": "# One\n\nWhere the harbour is set. " + filler(2),
			"b.md": "# Two\n\nWhere the harbour environment is set. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"a short form is found by the word", "where the harbour environment is set", map[string]string{
			"a.md": "# One\n\nWhere the harbour is set. " + filler(2),
			"b.md": "# Two\n\nWhere the harbour env is set. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"a product beside a common word is no name in a sentence", "what to paint below the line in my harbour app", map[string]string{
			"a.md": "# HarbourApp\n\nHarbourApp is here. " + filler(2),
			"b.md": "# Painting\n\nWhat to paint below the line. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"a section of a long page beats a page that mentions its subject", "why the anchor drags across soft mud", map[string]string{
			"a.md": "# Boats\n\n" + filler(20) + "\n\n## Why an anchor drags across soft mud\n\nThe anchor is too light. " + filler(4),
			"b.md": "# Harbours\n\nHere the mud is no place for an anchor. " + filler(14) + "It drags across what is soft. " + filler(2),
		}, []string{"a.md", "b.md"}},
		{"a misspelt word is looked for in headings too", "lantren", map[string]string{
			"a.md": "# One\n\n## Oil\n\nA lantern, a lantern and a lantern: each lantern is a lantern. " + filler(2),
			"b.md": "# Two\n\n## Lantern\n\nIt is of brass. " + filler(2),
		}, []string{"b.md", "a.md"}},
		{"stop words that happen to make a name are no match", "paint it as a mast and varnish it", map[string]string{
			"a.md": "# AMast\n\nAMast. " + filler(2),
			"b.md": "# Mast\n\nPaint, and then varnish. " + filler(2),
		}, []string{"b.md", "a.md"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range 12 { // make words about as rare as in a real corpus
				c.files[fmt.Sprintf("other/%d.md", i)] = fmt.Sprintf("# Page %d\n\n%s", i, filler(1+i%4))
			}
			x, _ := indexOf(t, c.files)
			var got []string
			for _, p := range paths(search(t, x, c.query)) {
				if slices.Contains(c.order, p) {
					got = append(got, p)
				}
			}
			if !slices.Equal(got, c.order) && !slices.Equal(got, c.order[:1]) {
				t.Errorf("%s: %v, want %v", c.query, got, c.order)
			}
		})
	}
}

func TestOneHitForEachDocument(t *testing.T) {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "## Part %d\n\nThe capstan turns. %s\n\n", i, strings.Repeat("More is said of it here. ", 100))
	}
	x, _ := indexOf(t, map[string]string{"long.md": "# Capstans\n\n" + b.String(), "short.md": "# Ropes\n\nA capstan pulls them.\n"})
	if got := paths(search(t, x, "capstan")); !slices.Equal(got, []string{"long.md", "short.md"}) {
		t.Errorf("%v", got)
	}
}

// Equally good documents are sorted by path, regardless of when they were indexed.
func TestEqualDocumentsAreInTheOrderOfTheirPaths(t *testing.T) {
	files := map[string]string{}
	for i := range 8 {
		files[fmt.Sprintf("p%d.md", i)] = fmt.Sprintf("Sextant, of the kind that is called %s.\n", strings.Repeat("x", 3+i))
	}
	h := newHistory()
	x := openIndex(t, Options{})
	for _, i := range []int{5, 2, 7, 0, 3, 1, 6, 4} {
		name := fmt.Sprintf("p%d.md", i)
		h.commit(map[string][]byte{name: []byte(files[name])})
		update(t, x, h)
	}
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprintf("p%d.md", i))
	}
	if got := paths(search(t, x, "sextant")); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// The rarity of a word is that in all searched collections: the scores are the same as in
// one collection with all pages.
func TestSeveralDatabasesScoreAsOne(t *testing.T) {
	all := map[string][]byte{}
	topics := strings.Fields("tiller rudder keel mast boom jib spinnaker halyard sheet cleat winch anchor")
	for i := range 60 {
		a, b, c := topics[i%12], topics[(i*5+1)%12], topics[(i*7+3)%12]
		all[fmt.Sprintf("docs/%02d-%s.md", i, a)] = fmt.Appendf(nil, "# The %s\n\nIt holds the %s, and %s.\n\n## With a %s\n\n%s", a, b, strings.Repeat(a+" ", i%4), c,
			strings.Repeat("The crew keeps watch over it. ", i%9))
	}
	both := openIndex(t, Options{})
	whole := openIndex(t, Options{})
	parts := []Collection{{ID: "one", Label: "one"}, {ID: "two", Label: "two"}, {ID: "three", Label: "three"}}
	for k, col := range parts {
		h := newHistory()
		some := map[string][]byte{}
		i := 0
		for _, p := range slices.Sorted(maps.Keys(all)) {
			if i%3 == k {
				some[p] = all[p]
			}
			i++
		}
		h.commit(some)
		if err := both.Update(t.Context(), col.ID, h); err != nil {
			t.Fatal(err)
		}
	}
	h := newHistory()
	h.commit(all)
	update(t, whole, h)
	for _, q := range []string{"rudder", "jib halyard", "how does the tiller hold the rudder and the keel", "spinnaker boom sheet cleat winch"} {
		one, err := whole.Rank(t.Context(), testCollections, Query{Text: q}, 0)
		if err != nil {
			t.Fatal(err)
		}
		many, err := both.Rank(t.Context(), parts, Query{Text: q}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(one) == 0 || len(one) != len(many) {
			t.Fatalf("%s: %d documents of one collection, %d of three", q, len(one), len(many))
		}
		byPath := func(a, b Ranked) int { return cmp.Compare(a.Path, b.Path) }
		slices.SortFunc(one, byPath)
		slices.SortFunc(many, byPath)
		for i := range one {
			if one[i].Path != many[i].Path || math.Abs(one[i].Score-many[i].Score) > 1e-4*one[i].Score {
				t.Errorf("%s: %s %.5f in one collection, %s %.5f in three", q, one[i].Path, one[i].Score, many[i].Path, many[i].Score)
			}
		}
	}
	// A source filter, and a filter for the path that is shown, select a file of a mounted
	// collection.
	mounted := []Collection{parts[0], {ID: "two", Label: "two", Mount: "/library/docs/two"}}
	r, err := both.Search(t.Context(), mounted, Query{Text: "rudder source:two path:/library/docs/two/docs/01-rudder.md"})
	if err != nil || len(r.Hits) != 1 || r.Hits[0].Path != "/library/docs/two/docs/01-rudder.md" || r.Hits[0].File != "docs/01-rudder.md" || r.Hits[0].Source != "two" {
		t.Errorf("%+v, %v", r.Hits, err)
	}
}

// The ranking for an evaluation begins with the hits of an answer and continues after them.
func TestRankGoesOnWhereAnAnswerEnds(t *testing.T) {
	files := map[string]string{}
	for i := range 150 {
		files[fmt.Sprintf("n%03d.md", i)] = fmt.Sprintf("# Log %d\n\nA barnacle%s and the number %d.", i, strings.Repeat(", a barnacle", i%7), i)
	}
	x, _ := indexOf(t, files)
	ranked, err := x.Rank(t.Context(), testCollections, Query{Text: "barnacle"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(ranked) != 150 {
		t.Errorf("%d of 150 documents are ranked", len(ranked))
	}
	if !slices.IsSortedFunc(ranked, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) }) {
		t.Error("the ranking is not in the order of its scores")
	}
	if some, err := x.Rank(t.Context(), testCollections, Query{Text: "barnacle"}, 20); err != nil || len(some) != 20 {
		t.Errorf("%d of 20 documents, error %v", len(some), err)
	}
}

// Feedback finds a page that has none of the query's words, and does not affect short
// queries.
func TestFeedback(t *testing.T) {
	files := map[string]string{
		"akin.md": "# Notes\n\nThe barograph and the aneroid stand in the cabin.\n",
	}
	for i := range 4 {
		files[fmt.Sprintf("p%d.md", i)] = fmt.Sprintf("# Weather %d\n\nTo measure air pressure at sea by instrument, read the barograph and the aneroid, number %d.\n", i, i)
	}
	for i := range 40 {
		files[fmt.Sprintf("o%02d.md", i)] = fmt.Sprintf("# Other %d\n\nSomething else is told in number %d, of boats and people.\n", i, i)
	}
	x, _ := indexOf(t, files)
	has := func(q string) bool {
		ranked, err := x.Rank(t.Context(), testCollections, Query{Text: q}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(ranked, func(r Ranked) bool { return r.Path == "akin.md" })
	}
	if q := "how to measure the pressure of air by an instrument at sea"; !has(q) {
		t.Errorf("%s: what the best pages share was not searched for", q)
	}
	if q := "air pressure"; has(q) {
		t.Errorf("%s: words were added to a short query", q)
	}
	if q := `"measure air pressure" instrument sea`; has(q) {
		t.Errorf("%s: words were added to a phrase", q)
	}
}

// A total also counts the pages that feedback found.
func TestATotalIsNoLessThanWhatIsListed(t *testing.T) {
	files := map[string]string{
		"a.md": "Alpha bravo charlie delta. Zebra yak walrus.", "b.md": "Alpha bravo charlie delta. Zebra yak walrus.\n\nAnd more.",
		"c.md": "Zebra yak walrus xerus.",
	}
	for i := range 14 {
		files[fmt.Sprintf("other%d.md", i)] = fmt.Sprintf("Page %d tells of other things.", i)
	}
	x, _ := indexOf(t, files)
	if r := search(t, x, "alpha bravo charlie delta"); len(r.Hits) != 3 || r.Total != 3 || r.Truncated {
		t.Errorf("%v of %d, truncated: %v", paths(r), r.Total, r.Truncated)
	}
	if r := search(t, x, "alpha bravo charlie delta limit:2"); len(r.Hits) != 2 || r.Total != 3 || !r.Truncated {
		t.Errorf("%v of %d, truncated: %v", paths(r), r.Total, r.Truncated)
	}
}
