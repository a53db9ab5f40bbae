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
	return tool{Tool: t, forChatGPT: &chat, run: s.search, example: `{"query":"a"}`}
}

const describeSearch = `Search before you answer anything about the user, their projects, people, decisions and notes, or about a product whose documentation is synced here: it ranks pages by words, names and identifiers over the user's own files and all sources at once.

Ask with the words you would expect on the page, an identifier (useAsyncData) or a plain question; one search per question works better than one long query. Qualifiers narrow it: source:nuxt, path:knowledge/**, kind:memory, lang:en, version:5.1, tag:howto, since:2026-01-01 or since:2w, sort:recent, "exact phrase", -word; each may be negated (-path:old/**).

Each result has the path and lines, the heading, and a snippet with the matching lines; the first results have more text, as far as max_tokens allows. Give an id to {read} to see the page; "also" lists its other versions and languages, "related" the files that it is about. total, truncated and scope report what was searched and whether there are more results; an empty answer suggests other terms.

For an exact string or a regular expression, use grep or rg in {bash_readonly} instead.`

const describeChatGPTSearch = `Search before you answer anything about the user, their projects, people, decisions and notes, or about a product whose documentation is synced here. It ranks pages over the user's own files and all sources at once.

Ask with the words you would expect on the page, an identifier (useAsyncData) or a plain question. Qualifiers in the query narrow it: source:nuxt, path:knowledge/**, kind:memory, since:2026-01-01, "exact phrase", -word.

Give a result's id to {fetch} for the whole document.`

const searchInput = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "query": {
      "type": "string",
      "description": "Words, names or a question. Qualifiers narrow it: source:nuxt path:knowledge/** kind:memory lang:en version:5.1 tag:howto since:2026-01-01 (or 2w) before:2026-06 sort:recent limit:20 \"exact phrase\" -word -path:old/**"
    },
    "limit": {
      "type": "integer",
      "minimum": 1,
      "description": "The number of results, at most 50. Default 8."
    },
    "source": {
      "type": "string",
      "description": "Search only this source, by its id; \"space\" for the person's own files. Default: everything."
    },
    "since": {
      "type": "string",
      "description": "Only pages that changed on or after this date, such as 2026-01-31."
    },
    "max_tokens": {
      "type": "integer",
      "minimum": 1,
      "description": "Budget of the whole answer, at most 20000. Default 1200."
    }
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
	// The operation reduces values above its limits, and says so.
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
