package index

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/testenv"
)

// quality is the mean of the usual measures over queries.
type quality struct {
	queries            int
	ndcg, mrr, hit1, n float64
	took               []time.Duration
}

func (q *quality) add(ranked []string, relevant map[string]float64, took time.Duration) {
	q.queries++
	q.took = append(q.took, took)
	var dcg, best float64
	for i, p := range ranked[:min(10, len(ranked))] {
		if g := relevant[p]; g > 0 {
			dcg += g / math.Log2(float64(i)+2)
			if best == 0 {
				best = 1 / float64(i+1)
			}
		}
	}
	var gains []float64
	for _, g := range relevant {
		gains = append(gains, g)
	}
	slices.Sort(gains)
	slices.Reverse(gains)
	ideal := 0.0
	for i, g := range gains[:min(10, len(gains))] {
		ideal += g / math.Log2(float64(i)+2)
	}
	if ideal > 0 {
		q.ndcg += dcg / ideal
	}
	q.mrr += best
	if best == 1 {
		q.hit1++
	}
}

func (q *quality) String() string {
	n := float64(max(1, q.queries))
	slices.Sort(q.took)
	return fmt.Sprintf("%d queries: nDCG@10 %.3f, MRR@10 %.3f, hit@1 %.3f, p50 %v, p95 %v", q.queries, q.ndcg/n, q.mrr/n, q.hit1/n,
		q.took[len(q.took)/2].Round(10*time.Microsecond), q.took[len(q.took)*95/100].Round(10*time.Microsecond))
}

func (q *quality) meanNDCG() float64 { return q.ndcg / float64(max(1, q.queries)) }
func (q *quality) meanMRR() float64  { return q.mrr / float64(max(1, q.queries)) }

func (q *quality) ask(t *testing.T, x *Index, text string, relevant map[string]float64) {
	t.Helper()
	start := time.Now()
	r, err := x.Search(t.Context(), testCollections, Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	q.add(paths(r), relevant, time.Since(start))
}

// jsonLines reads a BEIR file.
func jsonLines(t *testing.T, file string, each func(id, title, text string)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var d struct {
			ID    string `json:"_id"`
			Title string `json:"title"`
			Text  string `json:"text"`
		}
		if err := json.Unmarshal(sc.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		each(d.ID, d.Title, d.Text)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestJudgedCollections holds the ranking against collections with relevance
// judgments, in the BEIR layout. The floors are those of a good plain BM25.
func TestJudgedCollections(t *testing.T) {
	for name, floor := range map[string]float64{"cranfield": .36, "vaswani": .42} {
		t.Run(name, func(t *testing.T) {
			dir := testenv.LargeData(t, "ir", name)
			files := map[string][]byte{}
			jsonLines(t, filepath.Join(dir, "corpus.jsonl"), func(id, title, text string) {
				if title != "" {
					text = "# " + title + "\n\n" + text
				}
				files[id+".md"] = []byte(text)
			})
			relevant := map[string]map[string]float64{}
			qrels, err := os.ReadFile(filepath.Join(dir, "qrels.tsv"))
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range strings.Split(strings.TrimSpace(string(qrels)), "\n") {
				var q, d string
				var g float64
				if i == 0 {
					continue
				}
				if _, err := fmt.Sscan(l, &q, &d, &g); err != nil {
					t.Fatalf("%q: %v", l, err)
				}
				if relevant[q] == nil {
					relevant[q] = map[string]float64{}
				}
				relevant[q][d+".md"] = max(0, g)
			}
			h := newHistory()
			h.commit(files)
			x := openIndex(t, Options{})
			update(t, x, h)
			var q quality
			jsonLines(t, filepath.Join(dir, "queries.jsonl"), func(id, _, text string) {
				if relevant[id] != nil {
					q.ask(t, x, text, relevant[id])
				}
			})
			t.Log(name, &q)
			if q.meanNDCG() < floor {
				t.Errorf("nDCG@10 is %.3f, and at least %.3f is wanted", q.meanNDCG(), floor)
			}
		})
	}
}

var (
	descriptionLine = regexp.MustCompile(`(?m)^description:.*\n(?:[ \t]+.*\n)*`)
	identifier      = regexp.MustCompile(`^[a-z]+(?:[A-Z][a-z0-9]+)+$`)
)

// TestKnownPages looks for documentation pages by what their authors say of
// them, with that taken out of the index, and by the identifiers that they are
// about, as words and as such.
func TestKnownPages(t *testing.T) {
	files := map[string][]byte{}
	for name, under := range map[string]string{"nuxt": "docs/", "astro": "src/content/docs/en/"} {
		for p, data := range readTar(t, testenv.LargeData(t, "docs", name+".tar.gz"), func(p string) bool {
			return strings.HasPrefix(p, under) && (strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".mdx"))
		}) {
			files[name+"/"+p] = data
		}
	}
	descriptions, identifiers := map[string]string{}, map[string]map[string]float64{}
	for p, data := range files {
		fm, body := cutFrontMatter(data)
		if len(strings.Fields(fm.Description)) >= 4 {
			descriptions[p] = fm.Description
		}
		head := descriptionLine.ReplaceAll(data[:body], nil)
		files[p] = append(bytes.Clone(head), data[body:]...)
		names := []string{fm.Title}
		for _, l := range markdownLines(data, body) {
			if l.level > 0 && l.level <= 3 {
				names = append(names, l.heading)
			}
		}
		for _, n := range names {
			n = strings.TrimSuffix(strings.Trim(n, "`"), "()")
			if identifier.MatchString(n) {
				if identifiers[n] == nil {
					identifiers[n] = map[string]float64{}
				}
				identifiers[n][p] = 1
			}
		}
	}
	h := newHistory()
	h.commit(files)
	x := openIndex(t, Options{})
	update(t, x, h)
	var described, worded, exact quality
	for p, d := range descriptions {
		described.ask(t, x, d, map[string]float64{p: 1})
	}
	for n, ps := range identifiers {
		words := strings.ToLower(regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(n, func(s string) string { return " " + s }))
		worded.ask(t, x, words, ps)
		exact.ask(t, x, n, ps)
	}
	t.Log(len(files), "pages")
	t.Log("description → page  ", &described)
	t.Log("words → identifier  ", &worded)
	t.Log("identifier          ", &exact)
	for _, c := range []struct {
		name  string
		q     *quality
		floor float64
	}{{"description", &described, .77}, {"words", &worded, .95}, {"identifier", &exact, .97}} {
		if c.q.meanMRR() < c.floor {
			t.Errorf("%s: MRR@10 is %.3f, and at least %.2f is wanted", c.name, c.q.meanMRR(), c.floor)
		}
	}
	r := search(t, x, "useAsyncData")
	if len(r.Hits) == 0 || !strings.HasSuffix(r.Hits[0].Path, "use-async-data.md") {
		t.Errorf("useAsyncData finds %v", paths(r))
	}
}
