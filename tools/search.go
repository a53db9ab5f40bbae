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
		InputSchema: schema(searchInput), OutputSchema: schema(searchOutput), Scope: space.ScopeRead,
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
      "description": "The number of results, at most 50. Default 10."
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
      "description": "Budget of the whole answer, at most 20000. Default 5000."
    }
  },
  "required": ["query"],
  "additionalProperties": false
}`

const searchOutput = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "results": {
      "type": "array",
      "description": "Documents, the best first.",
      "items": {
        "type": "object",
        "properties": {
          "id": {"type": "string", "description": "Pass it to read unchanged."},
          "title": {"type": "string"},
          "url": {"type": "string", "description": "The original page on the web, for people, if there is one."},
          "path": {"type": "string"},
          "lines": {"type": "string", "description": "The lines of the snippet, such as 12-40."},
          "heading": {"type": "string"},
          "description": {"type": "string"},
          "snippet": {"type": "string", "description": "The lines that match; in the first results, the passage or the page around them."},
          "score": {"type": "number"},
          "source": {"type": "string", "description": "\"space\", or a source's id."},
          "version": {"type": "string"},
          "lang": {"type": "string"},
          "date": {"type": "string"},
          "etag": {"type": "string"},
          "also": {"type": "array", "items": {"type": "string"}, "description": "Other versions, languages or copies of it, which are not results of their own."},
          "also_total": {"type": "integer", "description": "Their number, if also has fewer."},
          "related": {"type": "array", "items": {"type": "string"}, "description": "The files that a page is about, or the pages about a file."}
        },
        "required": ["id", "title", "path", "snippet", "score", "source"],
        "additionalProperties": false
      }
    },
    "total": {"type": "integer", "description": "The number of documents that match."},
    "truncated": {"type": "boolean", "description": "Whether more documents match than the answer has."},
    "scope": {"type": "string", "description": "What was searched."},
    "index_commit": {"type": "string"},
    "index_age": {"type": "number", "description": "The number of seconds for which the index has been behind the newest commit; 0 if it is current."},
    "notes": {"type": "array", "items": {"type": "string"}},
    "suggestions": {"type": "array", "items": {"type": "string"}}
  },
  "required": ["results", "total", "truncated", "scope", "index_commit", "index_age"],
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
	found, err := s.o.Service.Search(ctx, c.Actor, in)
	if err != nil {
		return Result{}, err
	}
	if c.ChatGPT {
		base := s.origin(c)
		return structured(chatGPTAnswer(found, func(p string) string { return pageURL(base, c.Space().ID, p) }))
	}
	encoded, text := found.Encoded()
	return Result{Content: []Content{{Text: text}}, Structured: encoded}, nil
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
