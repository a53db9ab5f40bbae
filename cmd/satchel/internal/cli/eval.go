package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/server"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
)

// rankedAtOnce is the largest number of queries in one request. A running server sends
// the rankings of a request in one line, which must not get too long.
const rankedAtOnce = 25

func (c *call) evalCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "eval COLLECTION", Args: cobra.ExactArgs(1), Short: "measure how well search ranks, on questions with known answers", Long: `
COLLECTION is a directory in the layout of BEIR (corpus.jsonl, queries.jsonl and
qrels.tsv or qrels/test.tsv), or a file of queries. A directory is indexed in a
temporary directory. Each line of a file has a query, a tab or an arrow (→), and the
path of a page that the query should find in a space, or in the directory of --dir.
The command uses the search settings of the configuration.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", "the `NAME` of the person whose space has the pages (default: the first admin)")
		dir := fs.String("dir", "", "search the pages in `DIR` instead of a space")
		return func(ctx context.Context, args []string) error {
			if *user != "" && *dir != "" {
				return usage("--user and --dir each name where the pages are; give one of them")
			}
			figures, err := c.evaluate(ctx, args[0], *user, *dir)
			if err != nil {
				return err
			}
			return c.answer(figures, func() {
				c.printf("nDCG@10     %.4f\nMAP         %.4f\nMRR@10      %.4f\nrecall@100  %.4f\nmedian      %.1f ms\nqueries     %d\n",
					figures.NDCG, figures.MAP, figures.MRR, figures.Recall, figures.Median, figures.Queries)
			})
		}
	})
}

func (c *call) evaluate(ctx context.Context, name, user, dir string) (evaluate.Figures, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return evaluate.Figures{}, fault.New(fault.NotFound, "There is no collection %q.", name)
	case err != nil:
		return evaluate.Figures{}, fault.Wrap(err, fault.Unavailable, "The collection %q cannot be read: %s.", name, cause(err))
	case info.IsDir():
		if user != "" || dir != "" {
			return evaluate.Figures{}, usage("a directory brings its own pages; --user and --dir are for a file of queries and paths")
		}
		return c.evaluateBEIR(ctx, name)
	case dir != "":
		return c.evaluateDir(ctx, name, dir)
	}
	return c.evaluateSpace(ctx, name, user)
}

func (c *call) evaluateBEIR(ctx context.Context, dir string) (_ evaluate.Figures, err error) {
	cfg, err := c.load()
	if err != nil {
		return evaluate.Figures{}, err
	}
	col, err := evaluate.OpenBEIR(dir)
	if err != nil {
		return evaluate.Figures{}, err
	}
	defer func() { err = errors.Join(err, col.Close()) }()
	return c.measure(ctx, cfg, &col.Collection)
}

func (c *call) evaluateDir(ctx context.Context, file, dir string) (evaluate.Figures, error) {
	cfg, err := c.load()
	if err != nil {
		return evaluate.Figures{}, err
	}
	col, err := evaluate.ReadPairs(file)
	if err != nil {
		return evaluate.Figures{}, err
	}
	if err := col.AddDirectory(dir); err != nil {
		return evaluate.Figures{}, err
	}
	return c.measure(ctx, cfg, col)
}

// measure indexes a collection and searches it with its queries.
func (c *call) measure(ctx context.Context, cfg *config.Config, col *evaluate.Collection) (_ evaluate.Figures, err error) {
	c.notes(col.Notes)
	line := limitedLine{progressLine: progressLine{w: c.Stderr, shown: c.Watched}}
	defer line.clear()
	vectors, err := os.MkdirTemp("", "satchel-eval-")
	if err != nil {
		return evaluate.Figures{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(vectors)) }()
	o := index.Options{}
	if o.Semantic, err = server.Semantic(cfg, vectors, commandLog(c.Stderr, slog.LevelError)); err != nil {
		return evaluate.Figures{}, err
	}
	built, err := evaluate.Build(ctx, o, col.Documents, func(done int) {
		line.show("Indexed %d of %d documents", done, len(col.Documents))
	})
	if err != nil {
		return evaluate.Figures{}, err
	}
	defer func() { err = errors.Join(err, built.Close()) }()
	if err := built.Wait(ctx, func(done, total int) { line.show("Embedded %d of %d passages", done, total) }); err != nil {
		return evaluate.Figures{}, err
	}
	return evaluate.Run(ctx, built, col.Queries, evaluate.Depth, func(done int) {
		line.show("Asked %d of %d queries", done, len(col.Queries))
	})
}

// evaluateSpace searches the index of a space with the queries in file.
func (c *call) evaluateSpace(ctx context.Context, file, user string) (f evaluate.Figures, err error) {
	col, err := evaluate.ReadPairs(file)
	if err != nil {
		return f, err
	}
	line := progressLine{w: c.Stderr, shown: c.Watched}
	defer line.clear()
	answers := answered{}
	absent := []space.Path{}
	err = c.admin(ctx, func(s admin.Service) error {
		asked := 0
		for some := range slices.Chunk(col.Queries, rankedAtOnce) {
			in := service.RankPagesInput{Space: spaceNamed(user), Depth: evaluate.Depth}
			if asked == 0 {
				in.Paths = col.Relevant()
			}
			for _, q := range some {
				in.Queries = append(in.Queries, q.Text)
			}
			line.show(printCount("Asked", asked, len(col.Queries)) + " queries")
			progress := func(text string) {
				if asked == 0 {
					line.show(text)
				}
			}
			got, err := admin.Do(service.WithProgress(ctx, progress), s, (*service.Service).RankPages, in)
			if err != nil {
				return err
			}
			if len(got.Rankings) != len(some) {
				return fmt.Errorf("the server ranked %d of %d queries", len(got.Rankings), len(some))
			}
			for i, q := range some {
				answers[q.Text] = got.Rankings[i]
			}
			absent = append(absent, got.Absent...)
			asked += len(some)
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	if err := col.Missing(absent, "the space"); err != nil {
		return f, err
	}
	line.clear()
	c.notes(col.Notes)
	return evaluate.Run(ctx, answers, col.Queries, evaluate.Depth, nil)
}

func (c *call) notes(notes []string) {
	for _, n := range notes {
		c.note("satchel: %s\n", oneLine(n))
	}
}

// answered holds rankings by the text of their query.
type answered map[string]service.Ranking

// Rank implements evaluate.Ranker.
func (a answered) Rank(_ context.Context, query string, _ int) ([]string, time.Duration, error) {
	r := a[query]
	ids := make([]string, len(r.Paths))
	for i, p := range r.Paths {
		ids[i] = string(p)
	}
	return ids, r.Took, nil
}

// limitedLine is a progressLine that limits how often it prints. Its method show is safe for
// concurrent use.
type limitedLine struct {
	progressLine
	mu   sync.Mutex
	last time.Time
}

func (l *limitedLine) show(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.last) > 100*time.Millisecond {
		l.last = now
		l.progressLine.show(fmt.Sprintf(format, args...))
	}
}
