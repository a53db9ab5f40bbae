package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	protocol "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// BenchmarkEcho measures a tool that returns its input, over HTTP on loopback: through this
// package with all its checks, and through mcp-go as it comes. The two take turns, so that
// a busy machine slows both; "ratio" is mcp-go's median divided by ours. The goal is at
// least 0.5 with a real tool.
func BenchmarkEcho(b *testing.B) {
	bare := server.NewMCPServer("bare", "1")
	bare.AddTool(protocol.NewTool("echo", protocol.WithString("text")), func(_ context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		return protocol.NewToolResultText(r.GetString("text", "")), nil
	})
	plain := httptest.NewServer(server.NewStreamableHTTPServer(bare))
	defer plain.Close()
	ours := newRig(b).http
	for _, era := range []struct {
		name string
		call call
	}{
		{"2026-07-28", modern("1", "tools/call", `"name":"echo","arguments":{"text":"hello"}`)},
		{"2025-11-25", call{body: toolCall("1", "echo", `{"text":"hello"}`)}},
	} {
		b.Run(era.name, func(b *testing.B) {
			urls := []string{ours.URL, plain.URL}
			took := make([][]time.Duration, len(urls))
			sessions := make([]string, len(urls))
			for i, url := range urls {
				sessions[i] = send(b, url, initialize, nil, "").Header.Get("Mcp-Session-Id")
			}
			for b.Loop() {
				for i, url := range urls {
					began := time.Now()
					if resp := send(b, url, era.call.body, era.call.header, sessions[i]); resp.StatusCode != 200 {
						b.Fatal(resp.Status)
					}
					took[i] = append(took[i], time.Since(began))
				}
			}
			median := func(i int) float64 {
				slices.Sort(took[i])
				return float64(took[i][len(took[i])/2].Microseconds())
			}
			b.ReportMetric(median(0), "µs/satchel")
			b.ReportMetric(median(1), "µs/mcp-go")
			b.ReportMetric(median(1)/median(0), "ratio")
		})
	}
}

func send(b *testing.B, url, body string, header map[string]string, session string) *http.Response {
	q, err := http.NewRequest("POST", url+"/mcp", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set("Authorization", "Bearer ann")
	if session != "" {
		q.Header.Set("Mcp-Session-Id", session)
	}
	for k, v := range header {
		q.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	return resp
}
