package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/cmd/satchel/internal/stdio"
	"satchel/internal/fault"
	"satchel/internal/tokenizer"
)

// tokenReport is what `doctor --tokens` prints: what a person's clients pay, in tokens.
type tokenReport struct {
	Tokenizer string `json:"tokenizer"`
	// Tools is the cost of the list of tools and of the server's instructions, which a client
	// pays in every conversation.
	Tools        int `json:"tools"`
	Instructions int `json:"instructions"` // the cost of the instructions tool's answer
	// Search is the median cost of an answer to one of the Searches queries, which are headings
	// of the pages.
	Search   int `json:"search"`
	Searches int `json:"searches"`
	// Read is the median cost of a page that was read. ReadOverhead is the median cost of the
	// rest of the answer, relative to the page's numbered lines.
	Read         int     `json:"read"`
	ReadOverhead float64 `json:"read_overhead"`
	Pages        int     `json:"pages"`
}

const (
	// measuredPages is how many of a person's pages are read. measuredHeadings is how many
	// headings of each page are searched for.
	measuredPages    = 15
	measuredHeadings = 2
)

// tokens measures what the clients of a person pay. It connects to the server as they do.
func (c *call) tokens(ctx context.Context, user string) (err error) {
	cfg, err := c.existing()
	if err != nil {
		return err
	}
	h := &home{c: c, cfg: cfg, log: commandLog(c.Stderr, slog.LevelWarn), user: user}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, h.revoke(end), h.detach(end))
	}()
	if err := h.attach(ctx); err != nil {
		return err
	}
	m, err := h.client(ctx)
	if err != nil {
		return err
	}
	report, err := measureTokens(m)
	if err := errors.Join(err, m.close()); err != nil {
		return err
	}
	return c.answer(report, func() {
		c.printf("%-26s %6d\n%-26s %6d\n", "tools, server instructions", report.Tools, "instructions", report.Instructions)
		c.printf("%-26s %6d  median of %d headings\n", "search", report.Search, report.Searches)
		c.printf("%-26s %6d  median of %d pages, %.1f %% beyond their numbered lines\n", "read", report.Read, report.Pages, 100*report.ReadOverhead)
		c.printf("Counted with %s, a vocabulary of OpenAI; other models count up to a third more.\n", report.Tokenizer)
	})
}

func measureTokens(m *mcpClient) (r tokenReport, err error) {
	counter := tokenizer.New()
	r.Tokenizer = tokenizer.Vocabulary
	count := func(text string) (n int) {
		if err == nil {
			n, err = counter.Count(text)
		}
		return n
	}
	hello, err := m.start()
	if err != nil {
		return r, err
	}
	var list struct{ Tools json.RawMessage }
	if err := m.request("tools/list", struct{}{}, &list); err != nil {
		return r, err
	}
	r.Tools = count(hello) + count(string(list.Tools))
	var names []struct{ Name string }
	if err := json.Unmarshal(list.Tools, &names); err != nil {
		return r, err
	}
	for _, t := range names {
		if before, ok := strings.CutSuffix(t.Name, "instructions"); ok {
			m.prefix = before
		}
	}
	text, err := m.call("instructions", struct{}{})
	if err != nil {
		return r, err
	}
	r.Instructions = count(text)

	pages, err := m.pages()
	if err != nil {
		return r, err
	}
	var queries []string
	var reads, searches []int
	var overheads []float64
	for _, p := range pages {
		answer, err := m.call("read", map[string]any{"paths": []string{p}})
		if err != nil {
			return r, err
		}
		lines, headings := numberedLines(answer)
		if n := count(lines); n > 0 {
			all := count(answer)
			reads, overheads = append(reads, all), append(overheads, float64(all-n)/float64(n))
		}
		queries = append(queries, headings[:min(len(headings), measuredHeadings)]...)
	}
	for _, q := range queries {
		answer, err := m.call("search", map[string]any{"query": q})
		if err != nil {
			return r, err
		}
		searches = append(searches, count(answer))
	}
	r.Pages, r.Read, r.ReadOverhead = len(reads), median(reads), median(overheads)
	r.Searches, r.Search = len(searches), median(searches)
	return r, err
}

func median[T int | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// numberedLines returns the numbered lines of an answer of read, and the headings among them.
func numberedLines(answer string) (lines string, headings []string) {
	var b strings.Builder
	for l := range strings.Lines(answer) {
		number, text, ok := strings.Cut(l, "\t")
		if _, err := strconv.Atoi(number); !ok || err != nil {
			continue
		}
		b.WriteString(l)
		if mark, heading, _ := strings.Cut(strings.TrimSpace(text), " "); mark != "" && strings.Trim(mark, "#") == "" && heading != "" {
			headings = append(headings, heading)
		}
	}
	return b.String(), headings
}

// mcpClient is a client of the server. It sends one request at a time.
type mcpClient struct {
	in    *io.PipeWriter
	out   *json.Decoder
	ended chan error
	id    int
	// prefix is the beginning of all tools' names (the setting tools.prefix).
	prefix string
}

// client connects an mcpClient to the server. The client gets its own key.
func (h *home) client(ctx context.Context) (*mcpClient, error) {
	to, err := h.target(ctx, true)
	if err != nil {
		return nil, err
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	m := &mcpClient{in: inW, out: json.NewDecoder(outR), ended: make(chan error, 1)}
	o := h.c.carries(to, h.again)
	o.In, o.Out = inR, outW
	go func() {
		err := stdio.Run(ctx, o)
		inR.CloseWithError(io.ErrClosedPipe)
		outW.Close()
		m.ended <- err
	}()
	return m, nil
}

func (m *mcpClient) close() error {
	m.in.Close()
	return <-m.ended
}

// start begins the session and returns the server's instructions.
func (m *mcpClient) start() (instructions string, err error) {
	var hello struct{ Instructions string }
	err = m.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "satchel-doctor", "version": "1"},
	}, &hello)
	if err == nil {
		err = m.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	return hello.Instructions, err
}

func (m *mcpClient) send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = m.in.Write(append(b, '\n'))
	return err
}

func (m *mcpClient) request(method string, params, result any) error {
	m.id++
	if err := m.send(map[string]any{"jsonrpc": "2.0", "id": m.id, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		var answer struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := m.out.Decode(&answer); err != nil {
			return err
		}
		switch {
		case !bytes.Equal(answer.ID, strconv.AppendInt(nil, int64(m.id), 10)):
		case answer.Error != nil:
			return fault.New(fault.Unavailable, "The server refused %s: %s", method, answer.Error.Message)
		default:
			return json.Unmarshal(answer.Result, result)
		}
	}
}

// call returns the text of a tool's answer.
func (m *mcpClient) call(name string, args any) (string, error) {
	var answer struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := m.request("tools/call", map[string]any{"name": m.prefix + name, "arguments": args}, &answer); err != nil {
		return "", err
	}
	var parts []string
	for _, p := range answer.Content {
		parts = append(parts, p.Text)
	}
	text := strings.Join(parts, "\n")
	if answer.IsError {
		return "", fault.New(fault.Unavailable, "The tool %s failed: %s", name, text)
	}
	return text, nil
}

// pages returns the paths of some Markdown pages of the space and of the library: at most
// measuredPages, spread evenly over the list of all pages.
func (m *mcpClient) pages() (some []string, err error) {
	var all []string
	for _, glob := range []string{"**/*.md", "/library/**/*.md"} {
		text, err := m.call("read", map[string]any{"paths": []string{glob}})
		if err != nil {
			return nil, fmt.Errorf("list the pages: %w", err)
		}
		for l := range strings.Lines(text) {
			if l = strings.TrimSpace(l); strings.HasSuffix(l, ".md") && !strings.HasPrefix(l, "==") {
				all = append(all, l)
			}
		}
	}
	for i := range min(len(all), measuredPages) {
		some = append(some, all[i*len(all)/min(len(all), measuredPages)])
	}
	return some, nil
}
