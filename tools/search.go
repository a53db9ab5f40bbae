package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"satchel/tools/index"
)

func (s *Set) search(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	l := s.o.Limits
	a := parseArguments(raw, l.ArgumentBytes, "query", "limit", "source", "since", "max_tokens")
	var q index.Query
	q.Text = a.required("query", `"deploy checklist"`)
	var notes []string
	if n := utf8.RuneCountInString(q.Text); n > l.QueryChars {
		q.Text = clip(q.Text, l.QueryChars) // as many characters have no fewer bytes
		notes = append(notes, fmt.Sprintf("The query has %s characters; only its beginning was used. Search for the few words that matter.", thousands(int64(n))))
	}
	lowered := func(n int, note string) int {
		if note != "" {
			notes = append(notes, note)
		}
		return n
	}
	q.Limit = lowered(a.count("limit", 0, l.MaxSearchResults)) // 0: left to the query's text
	q.UsualLimit = l.SearchResults
	q.MaxTokens = lowered(a.count("max_tokens", l.SearchTokens, l.MaxSearchTokens))
	q.MaxWait = max(0, l.SearchWait)
	q.Source = strings.TrimSpace(a.text("source"))
	// A date that is no plain one is left to the query language, which knows
	// "last week" and says what it does not know.
	if since := strings.TrimSpace(a.text("since")); since != "" && !isDay(since) {
		q.Text += ` since:"` + strings.ReplaceAll(since, `"`, "") + `"`
	} else {
		q.Since = a.day("since")
	}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	// Only this call decides which collections the caller may search.
	cols, err := s.collections(ctx, c)
	if err != nil {
		return Result{}, err
	}
	// A search takes no turn while it waits for the index.
	if err := s.o.Searcher.Await(ctx, cols, q); err != nil {
		return Result{}, err
	}
	end, err := s.turns.take(ctx, c.User)
	if err != nil {
		return Result{}, err
	}
	defer end()
	found, err := s.o.Searcher.Search(ctx, cols, q)
	if err != nil {
		return Result{}, err
	}
	answer := newSearchAnswer(found)
	answer.Notes = append(answer.Notes, notes...) // a note that the index is behind stays first
	answer, sent, err := fitAnswer(answer, found.Hits, q.MaxTokens)
	if s.chatGPT(c) {
		base := s.origin(c)
		return structured(chatGPTAnswer(answer, func(p string) string { return pageURL(base, c.Space, p) }))
	}
	return sent, err
}

// isDay tells whether an argument is a date for the calendar alone.
func isDay(s string) bool {
	return strings.Trim(s, "0123456789-:TZ.+") == "" && len(s) >= len("2006")
}
