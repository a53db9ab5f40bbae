package tools

import "encoding/json"

// The schemas are JSON Schema 2020-12, written by hand: closed, and without
// null among the types, which strict clients refuse. Upper bounds are told in
// words and not as "maximum": a number above one is lowered and the answer says
// so, where a validating client would have made the model call again.

func schema(s string) json.RawMessage { return json.RawMessage(s) }

const noArguments = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {},
  "additionalProperties": false
}`

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
	fetchInput          = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	fetchOutput         = `{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"text":{"type":"string"},"url":{"type":"string"},"metadata":{"type":"object","additionalProperties":{"type":"string"}}},"required":["id","title","text","url"]}`
)

const readInput = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "paths": {
      "type": "array",
      "items": {"type": "string"},
      "minItems": 1,
      "description": "Each one of: a file (knowledge/x.md), lines of it (knowledge/x.md:120-180; :120- goes on to its end, :120 gives 40 lines from there), a section (knowledge/x.md#heading), a directory (knowledge/) or a glob (knowledge/**/*.md) to list. Ids from search are paths."
    },
    "max_tokens": {
      "type": "integer",
      "minimum": 1,
      "description": "Budget of the whole answer, shared by the files, at most 20000. Default 10000."
    }
  },
  "required": ["paths"],
  "additionalProperties": false
}`

// What both forms of bash take, before and after what one alone does.
const (
	bashInputHead = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "command": {
      "type": "string",
      "description": "A bash script, run with bash -c in /space."
    },`
	bashInputTail = `
    "background": {
      "type": "boolean",
      "description": "Run it as a background job and answer at once. Default false."
    }
  },
  "required": ["command"],
  "additionalProperties": false
}`
)

const bashReadonlyInput = bashInputHead + bashInputTail

const bashInput = bashInputHead + `
    "comment": {
      "type": "string",
      "description": "Why, in one line: the message of the commit, should the command change files."
    },` + bashInputTail
