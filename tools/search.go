package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"math"

	"satchel/internal/service"
	"satchel/internal/space"
)

const nameSearch = "search"

func (s *Registry) searchTool() tool {
	t := Tool{
		Name: nameSearch, Title: "Search knowledge and memory", Description: describeSearch,
		InputSchema: schema(searchInput), Scope: space.ScopeRead,
		ReadOnly: true, Idempotent: true,
	}
	chat := t
	chat.Description, chat.InputSchema, chat.OutputSchema = describeChatGPTSearch, schema(chatGPTSearchInput), schema(chatGPTSearchOutput)
	return tool{
		Tool: t, forChatGPT: &chat,
		run: s.search, example: `{"query":"a"}`,
		docs: "finds pages, the best first, within a token budget ([search.md](search.md))",
	}
}

const describeSearch = `Search before you answer about the user, their work, or a product documented here. Ask in the words you expect on the page; an identifier or a plain question also works. Returns the best passages with path and lines, and weak matches as paths only. Filters in the query: source:nuxt path:knowledge/** kind:memory lang:en version:4 tag:howto since:2w before:2026-06 sort:recent "exact phrase" -word -path:old/**. For regular expressions use rg in {bash_readonly}.`

const describeChatGPTSearch = `Search before you answer anything about the user, their projects, people, decisions and notes, or about a product whose documentation is synced here. It ranks pages over the user's own files and all sources at once.

Ask with the words you would expect on the page, an identifier (useAsyncData) or a plain question. Qualifiers in the query narrow it: source:nuxt, path:knowledge/**, kind:memory, since:2026-01-01, "exact phrase", -word.

Give a result's id to {fetch} for the whole document.`

const searchInput = `{
  "type": "object",
  "properties": {
    "query": {"type": "string"},
    "limit": {"type": "integer", "description": "Pages, default 8, at most 50"},
    "source": {"type": "string"},
    "since": {"type": "string"},
    "max_tokens": {"type": "integer", "description": "Of the answer, default 1600, at most 20000"}
  },
  "required": ["query"],
  "additionalProperties": false
}`

// The schemas of ChatGPT's deep research and company knowledge, which require exactly these
// inputs (reference: developers.openai.com/api/docs/mcp).
const (
	chatGPTSearchInput  = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
	chatGPTSearchOutput = `{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"url":{"type":"string"}},"required":["id","title","url"]}}},"required":["results"]}`
)

func (s *Registry) search(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "query", "limit", "source", "since", "max_tokens")
	in := service.SearchInput{
		Space: c.Space(), Query: a.required("query", `"deploy checklist"`), Source: a.text("source"), Since: a.since("since"),
	}
	// Service.Search lowers values above its limits, and says so.
	in.Limit, _ = a.count("limit", 0, math.MaxInt32)
	in.MaxTokens, _ = a.count("max_tokens", 0, math.MaxInt32)
	if err := a.err(); err != nil {
		return Result{}, err
	}
	in.Outline = !c.ChatGPT
	found, err := s.o.Service.Search(ctx, c.Actor, in)
	if err != nil {
		return Result{}, err
	}
	if c.ChatGPT {
		base := s.origin(c)
		return structured(chatGPTAnswer(found, func(p string) string { return pageURL(base, c.Space().ID, p) }))
	}
	return Result{Content: []Content{{Text: foundText(found)}}, Meta: foundMeta(found)}, nil
}

// chatGPTAnswer returns the part of an answer that ChatGPT accepts. ChatGPT requires an
// absolute url for every result, so a result without an upstream page gets a page of this
// server.
func chatGPTAnswer(a service.SearchResults, fileURL func(path string) string) any {
	type result struct {
		ID    string `json:"id"`
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	results := make([]result, len(a.Results))
	for i, r := range a.Results {
		results[i] = result{r.ID, r.Title, cmp.Or(r.URL, fileURL(r.Path))}
	}
	return struct {
		Results []result `json:"results"`
	}{results}
}
