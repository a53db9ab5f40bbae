package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// guessCounts are the counts of the lines about bad tokens in a JSON log.
func guessCounts(t *testing.T, log string) (counts []int) {
	t.Helper()
	for line := range strings.Lines(log) {
		var l struct {
			N int `json:"since the last such line"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.N > 0 {
			counts = append(counts, l.N)
		}
	}
	return counts
}

// A flood of tokens that prove nobody has one line at its beginning and one that
// counts the rest, through every handler that takes a token. Requests without a
// token have none, and no line has a token.
func TestBadTokensAreLoggedAndCounted(t *testing.T) {
	cfg := settings(t)
	cfg.Log.Format = "json"
	r := boot(t, cfg)
	send := func(path, token string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(r.URL(), "/mcp")+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	const each = 100 // more than the limit of an address
	bad := "guessed-" + strings.Repeat("x", 20)
	for range each {
		send("/mcp", bad)
		send("/api/sandbox/search", bad)
		send("/mcp", "")
	}
	if got := guessCounts(t, r.log.String()); !slices.Equal(got, []int{1}) {
		t.Errorf("while they come the lines count %v, want the first alone", got)
	}
	r.end()
	if got := guessCounts(t, r.log.String()); !slices.Equal(got, []int{1, 2*each - 1}) {
		t.Errorf("in the end the lines count %v", got)
	}
	if strings.Contains(r.log.String(), bad) {
		t.Error("the log has a token")
	}
}

// There is one line a minute while bad tokens come, and none about quiet minutes.
func TestBadTokensHaveOneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := &guessLog{log: slog.New(slog.NewJSONHandler(&log, nil))}
		from := netip.MustParseAddr("192.0.2.1")
		for range 3 {
			for range 5 {
				g.note(from)
			}
			time.Sleep(guessesEvery + time.Second)
			synctest.Wait()
		}
		time.Sleep(10 * guessesEvery)
		synctest.Wait()
		g.note(from)
		g.end()
		if got := guessCounts(t, log.String()); !slices.Equal(got, []int{1, 4, 5, 5, 1}) {
			t.Errorf("the lines count %v", got)
		}
	})
}
