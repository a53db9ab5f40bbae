package tools

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

func (s *Set) search(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	l := s.o.Limits
	a := parseArguments(raw, l.ArgumentBytes, "query", "limit", "source", "since", "max_tokens")
	r := SearchRequest{Space: c.Space, User: c.User}
	r.Query = a.required("query", `"deploy checklist"`)
	if n := utf8.RuneCountInString(r.Query); n > l.QueryChars {
		a.problem("The argument \"query\" has %s characters, and %s are allowed: search for the few words that matter.", thousands(int64(n)), thousands(int64(l.QueryChars)))
	}
	var notes []string
	note := func(s string) {
		if s != "" {
			notes = append(notes, s)
		}
	}
	var lowered string
	r.Limit, lowered = a.count("limit", l.SearchResults, l.MaxSearchResults)
	note(lowered)
	r.MaxTokens, lowered = a.count("max_tokens", l.SearchTokens, l.MaxSearchTokens)
	note(lowered)
	r.Source = strings.TrimSpace(a.text("source"))
	r.Since = a.day("since")
	if err := a.err(); err != nil {
		return Result{}, err
	}
	answer, err := s.o.Searcher.Search(ctx, r)
	if err != nil {
		return Result{}, err
	}
	for i := range answer.Results {
		if res := &answer.Results[i]; res.URL == "" {
			p, err := parseRef(res.Path)
			if err == nil {
				res.URL = FileURL(s.o.PublicURL(), c.Space, p.path)
			}
		}
	}
	if s.chatGPT(c) {
		return structured(chatGPTAnswer(answer))
	}
	answer.Notes = append(notes, answer.Notes...)
	if answer.Results == nil {
		answer.Results = []SearchResult{} // [] and not null
	}
	return structured(answer)
}

type chatGPTResult struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// chatGPTAnswer leaves of an answer what ChatGPT's form has.
func chatGPTAnswer(a SearchAnswer) any {
	results := make([]chatGPTResult, len(a.Results))
	for i, r := range a.Results {
		results[i] = chatGPTResult{r.ID, r.Title, r.URL}
	}
	return struct {
		Results []chatGPTResult `json:"results"`
	}{results}
}
