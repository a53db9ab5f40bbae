package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/rank"
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

Each result has the path and lines, the heading, and a snippet that shows why; the first ones carry more text as far as max_tokens allows. Give an id to {read} to see the page; also names other versions and languages of it, related the files that it is about. total, truncated and scope say what was searched and whether there is more; an empty answer suggests other terms.

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
      "description": "How many documents to give, at most 50. Default 10."
    },
    "source": {
      "type": "string",
      "description": "Search only this source, by its id; \"space\" for the person's own files. Default: everything."
    },
    "since": {
      "type": "string",
      "description": "Only what changed on or after this date, such as 2026-01-31."
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
          "id": {"type": "string", "description": "Give it to read, as it is."},
          "title": {"type": "string"},
          "url": {"type": "string", "description": "The page upstream, for people; only where it has one."},
          "path": {"type": "string"},
          "lines": {"type": "string", "description": "Where the snippet is, such as 12-40."},
          "heading": {"type": "string"},
          "description": {"type": "string"},
          "snippet": {"type": "string", "description": "The lines that match; of the first results the passage or the page around them."},
          "score": {"type": "number"},
          "source": {"type": "string", "description": "\"space\", or a source's id."},
          "version": {"type": "string"},
          "lang": {"type": "string"},
          "date": {"type": "string"},
          "etag": {"type": "string"},
          "also": {"type": "array", "items": {"type": "string"}, "description": "Other versions, languages or copies of it, which are not listed by themselves."},
          "also_total": {"type": "integer", "description": "How many there are, where that is more."},
          "related": {"type": "array", "items": {"type": "string"}, "description": "The files that a page is about, or the pages about a file."}
        },
        "required": ["id", "title", "path", "snippet", "score", "source"],
        "additionalProperties": false
      }
    },
    "total": {"type": "integer", "description": "How many documents matched."},
    "truncated": {"type": "boolean", "description": "Whether more matched than are given."},
    "scope": {"type": "string", "description": "What was searched."},
    "index_commit": {"type": "string"},
    "index_age": {"type": "number", "description": "For how many seconds the index has been behind the newest commit; 0 where it is not."},
    "notes": {"type": "array", "items": {"type": "string"}},
    "suggestions": {"type": "array", "items": {"type": "string"}}
  },
  "required": ["results", "total", "truncated", "scope", "index_commit", "index_age"],
  "additionalProperties": false
}`

// The forms of ChatGPT's deep research and company knowledge, which checks the
// inputs for exactly these (reference: developers.openai.com/api/docs/mcp).
const (
	chatGPTSearchInput  = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
	chatGPTSearchOutput = `{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"url":{"type":"string"}},"required":["id","title","url"]}}},"required":["results"]}`
)

func (s *Registry) search(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
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
	q.Explain = c.Explain
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
	end, err := s.turns.take(ctx, c.User())
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
	if err == nil && c.Explain {
		why := make([]*rank.Explanation, len(answer.Results))
		for i := range why {
			why[i] = found.Hits[i].Why
		}
		sent.Meta = map[string]any{"why": why}
	}
	if c.ChatGPT {
		base := s.origin(c)
		return structured(chatGPTAnswer(answer, func(p string) string { return pageURL(base, c.Space().ID, p) }))
	}
	return sent, err
}

// isDay reports whether an argument is a date for the calendar alone.
func isDay(s string) bool {
	return strings.Trim(s, "0123456789-:TZ.+") == "" && len(s) >= len("2006")
}
