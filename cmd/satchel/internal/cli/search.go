package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/service"
	"satchel/tools/index/parse"
	"satchel/tools/index/rank"
)

func (c *call) searchCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "search QUERY", Args: cobra.MinimumNArgs(1), Short: "search a space, as its owner's AI does", Long: `
QUERY can be several words, without quotes around all of them. docs/search.md describes
the query language. If QUERY excludes words, put -- before it:
satchel search -- deploy -old.
docs/search.md also describes what --json prints.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		in := service.SearchInput{}
		fs.IntVar(&in.Limit, "limit", 0, "at most `N` results (default: 10)")
		fs.StringVar(&in.Source, "source", "", "only from these `SOURCES`, separated by commas")
		fs.StringVar(&in.Since, "since", "", "only pages that changed since the `DAY`, such as 2026-01-31")
		fs.IntVar(&in.MaxTokens, "max-tokens", 0, "at most `N` tokens in the answer (default: 5000)")
		fs.BoolVar(&in.Explain, "explain", false, "show the parts of each result's score")
		return func(ctx context.Context, args []string) error {
			if fs.Changed("limit") && in.Limit < 1 {
				return usage("--limit %d is not a number above 0", in.Limit)
			}
			if fs.Changed("max-tokens") && in.MaxTokens < 1 {
				return usage("--max-tokens %d is not a number above 0", in.MaxTokens)
			}
			// The shell removes the quotes of a phrase, unless they were typed within other quotes.
			in.Query, in.Space = strings.Join(args, " "), spaceNamed(*user)
			if strings.TrimSpace(in.Query) == "" {
				return usage("name what to search for, such as: satchel search deploy checklist")
			}
			found, err := longTask(ctx, c, (*service.Service).Search, in)
			if err != nil {
				return err
			}
			return c.answer(found, func() { printFound(c.Stdout, found, newMarker(c, in.Query)) })
		}
	})
}

// headingAt returns the heading above a line of the snippet. at is the index of the
// line, and first is the number of the snippet's first line in its file. r.Heading
// is the heading of the lines that the index ranks best, but an excerpt of a longer
// text may begin elsewhere.
func headingAt(r service.SearchResult, at, first int) string {
	// The headings of subtitles are the times of their cues.
	if ext := path.Ext(r.Path); ext == ".srt" || ext == ".vtt" {
		for _, l := range slices.Backward(strings.Split(r.Snippet, "\n")[:at+1]) {
			if from, _, ok := strings.Cut(l, " --> "); ok {
				clock, _, _ := strings.Cut(strings.ReplaceAll(from, ",", "."), ".")
				return clock
			}
		}
	}
	text := r.Snippet
	if first > 1 {
		// Otherwise a rule (---) in the snippet's first line could be taken for front matter.
		text, at = "\n"+text, at+1
	}
	inside := false
	under := ""
	for _, s := range parse.Sections(r.Path, []byte(text)) {
		if s.From <= at+1 {
			under = s.Title
		}
		inside = inside || s.Title == r.Heading
	}
	if under == "" && !inside {
		return r.Heading // the heading is before the snippet
	}
	return under
}

// printFound prints an answer for a person: the place of each result, in a form
// that editors accept, and the lines that show why it was found.
func printFound(w io.Writer, a service.SearchResults, m marker) {
	if a.IndexAge > 0 && len(a.Notes) > 0 { // the first note says how far behind the index is
		fmt.Fprintf(w, "%s\n\n", oneLine(a.Notes[0]))
		a.Notes = a.Notes[1:]
	}
	for _, r := range a.Results {
		from, to, _ := strings.Cut(r.Lines, "-")
		first, _ := strconv.Atoi(from) // 0 if there are no line numbers
		last, _ := strconv.Atoi(to)
		lines := m.excerpt(r.Snippet, first)
		heading := r.Heading
		if len(lines) > 0 {
			heading = headingAt(r, lines[0].number-first, first)
		}
		// If the snippet omits or rewrites lines, the line number of an excerpt is unknown,
		// and the place stays that of the whole snippet.
		if n := strings.Count(strings.TrimSuffix(r.Snippet, "\n"), "\n"); first > 0 && last == first+n && len(lines) > 0 {
			first, last = lines[0].number, lines[len(lines)-1].number
		}
		place := printable(r.Path)
		if first > 0 {
			place += ":" + strconv.Itoa(first)
		}
		if last > first {
			place += "-" + strconv.Itoa(last)
		}
		about := []string{}
		for _, s := range []string{r.Title, heading} {
			if s = oneLine(s); s != "" && !slices.Contains(about, s) {
				about = append(about, s)
			}
		}
		fmt.Fprintf(w, "%s  %s\n", m.strong(place), strings.Join(about, " › "))
		for _, l := range lines {
			fmt.Fprintln(w, strings.TrimRight("    "+m.mark(l.text), " "))
		}
		if len(r.Also) > 0 {
			fmt.Fprintf(w, "    also: %s\n", oneLine(strings.Join(r.Also, ", ")))
		}
		if r.Why != nil {
			printReasons(w, r.Why)
		}
		fmt.Fprintln(w)
	}
	for _, n := range a.Notes {
		fmt.Fprintln(w, oneLine(n))
	}
	if len(a.Suggestions) > 0 {
		fmt.Fprintf(w, "Did you mean: %s\n", oneLine(strings.Join(a.Suggestions, ", ")))
	}
	what := "Nothing was found"
	switch n := len(a.Results); {
	case n > 0 && a.Total > n:
		what = fmt.Sprintf("The best %d of %s", n, pages(a.Total))
	case n > 0:
		what = pages(n)
	}
	fmt.Fprintf(w, "%s in %s.\n", what, oneLine(a.Scope))
}

// printReasons shows how a result came to its score. It prints the score after each step. Below
// the first step it also prints what each search term adds.
func printReasons(w io.Writer, e *rank.Explanation) {
	for i, s := range e.Steps {
		fmt.Fprintf(w, "    %8.3f  %s\n", s.Score, s.What)
		if i > 0 {
			continue
		}
		for _, t := range e.Terms {
			var fields []string
			for _, f := range t.Fields {
				fields = append(fields, fmt.Sprintf("%d in the %s of %d words: %.2f", f.Count, f.Field, f.Words, f.Score))
			}
			name := printable(t.Term)
			if t.Added {
				name += " (added from the best pages)"
			}
			fmt.Fprintf(w, "      %8.3f  %s: weight %.2f × rarity %.2f (in %s) × (%s)\n",
				t.Score, name, t.Weight, t.Rarity, plural(t.Passages, "passage"), strings.Join(fields, " + "))
		}
	}
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func pages(n int) string {
	if n == 1 {
		return "1 page"
	}
	return fmt.Sprintf("%d pages", n)
}
