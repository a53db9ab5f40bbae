package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/present"
)

const nameFetch = "fetch"

func (s *Registry) fetchTool() tool {
	t := Tool{
		Name: nameFetch, Title: "Fetch one document", Description: describeFetch,
		InputSchema: schema(fetchInput), OutputSchema: schema(fetchOutput), Scope: space.ScopeRead,
		ReadOnly: true, Idempotent: true,
	}
	return tool{
		Tool: t, forChatGPT: &t, onlyChatGPT: true,
		run: s.fetch, example: `{"id":"a.md"}`,
		docs: "returns one page that `search` found. Only ChatGPT sees this tool",
	}
}

const describeFetch = `Fetch one whole document that {search} found, by its id, when you need more of it than the search showed.

Answers with its title, text, url and metadata. A document of more than 20,000 tokens is cut at its end; metadata.next is then the id that fetches the rest.`

// The schemas that ChatGPT requires, as for search.
const (
	fetchInput  = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	fetchOutput = `{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"text":{"type":"string"},"url":{"type":"string"},"metadata":{"type":"object","additionalProperties":{"type":"string"}}},"required":["id","title","text","url"]}`
)

// fetched is the structured answer of fetch, with the fields that ChatGPT requires.
type fetched struct {
	ID       string            `json:"id"`
	Title    string            `json:"title"`
	Text     string            `json:"text"`
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata"`
}

func (s *Registry) fetch(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "id")
	id := a.required("id", `"knowledge/notes.md"`)
	if err := a.err(); err != nil {
		return Result{}, err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return Result{}, err
	}
	f, err := v.fetchOne(ctx, id)
	if err != nil {
		return Result{}, err
	}
	return structured(f)
}

func (v view) fetchOne(ctx context.Context, id string) (fetched, error) {
	v, r, e, err := v.resolve(ctx, id)
	if err != nil {
		return fetched{}, err
	}
	if e.Dir {
		return fetched{}, fault.New(fault.Invalid, "%s is a directory: fetch a file in it, by an id from search.", r)
	}
	if e.Size > v.s.o.Limits.FileBytes {
		return fetched{}, fault.New(fault.TooLarge, "%s has %s, too much to fetch.", r, bytesText(e.Size))
	}
	release, err := v.hold(ctx, e.Size)
	if err != nil {
		return fetched{}, err
	}
	defer release()
	b, err := v.content(ctx, e)
	if err != nil {
		return fetched{}, err
	}
	f := fetched{
		ID: id, Title: parse.Title(string(e.Path), b), URL: pageURL(v.origin, v.id, r.String()),
		Metadata: map[string]string{"path": r.String(), "etag": string(e.Blob), "commit": string(v.at)},
	}
	// The page of a source has its own address on the web. An AI that cites a page of this server
	// would send people there who cannot sign in.
	if v.source != nil && v.source.Kind.FromWeb() {
		fm, _ := parse.CutFrontMatter(b)
		f.URL = cmp.Or(fm.URL, f.URL)
	}
	if isBinary(b) {
		f.Text = fmt.Sprintf("A binary file (%s, %s).", http.DetectContentType(b), bytesText(int64(len(b))))
		return f, nil
	}
	text, _ := validText(b)
	lines := splitText(text)
	from, to := max(r.from, 1), len(lines)
	if r.to > 0 {
		to = min(r.to, to)
	}
	f.Metadata["lines"] = fmt.Sprint(len(lines))
	limit := v.s.o.Limits.MaxReadTokens
	if r.heading != "" && present.EstimateTokens(text) > limit {
		// The whole file does not fit, so begin at the heading that the search found.
		if sec, ok := findSection(v.sections(e, b), r.heading); ok {
			from = sec.From
		}
	}
	if from > len(lines) && from > 1 {
		return fetched{}, fault.New(fault.Invalid, "%s has %s; there is no line %d.", r, plural(len(lines), "line", "lines"), from)
	}
	var out strings.Builder
	spent := 0
	for n := from; n <= to; n++ {
		l, cut := clipTokens(lines[n-1], limit-1)
		if cut {
			l += "… [line cut]"
		}
		if spent += present.EstimateTokens(l) + 1; spent > limit && n > from {
			next := fmt.Sprintf("%s:%d-", r, n)
			f.Metadata["truncated"], f.Metadata["next"] = "true", next
			fmt.Fprintf(&out, "\n[cut after line %d of %d; fetch the id %s to continue]", n-1, len(lines), next)
			break
		}
		out.WriteString(l)
		out.WriteByte('\n')
	}
	f.Text = out.String()
	if suspicious(r.String(), f.Title+"\n"+f.Text) {
		f.Metadata["warning"] = commandsWarning
	}
	return f, nil
}

// FileURL returns the URL of the page that shows a file of a space to its members. base is
// the server's public URL.
func FileURL(base string, id space.SpaceID, path string) string {
	segs := strings.Split(path, "/")
	for i, s := range segs {
		segs[i] = url.PathEscape(s)
	}
	return strings.TrimSuffix(base, "/") + "/spaces/" + url.PathEscape(string(id)) + "/files/" + strings.Join(segs, "/")
}
