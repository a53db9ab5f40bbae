package telemetry_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns our own lines of the metrics page.
func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("the metrics page answers %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(page, l+"\n") {
			var ours []string
			for have := range strings.Lines(page) {
				if strings.HasPrefix(have, "satchel_") && !strings.Contains(have, "_bucket") {
					ours = append(ours, have)
				}
			}
			t.Errorf("the page lacks %s; it has\n%s", l, strings.Join(ours, ""))
		}
	}
}

func TestRequestsAreMeasuredByRoute(t *testing.T) {
	m := telemetry.NewMetrics("v1")
	var logged bytes.Buffer
	log, err := telemetry.NewLogger(telemetry.LogOptions{Writer: &logged, Level: "debug"})
	if err != nil {
		t.Fatal(err)
	}
	h := telemetry.NewHTTP(m, log)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /files/{path...}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	mux.HandleFunc("POST /fail", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(103); w.WriteHeader(418) })
	mux.HandleFunc("/nothing", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("/panic", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	srv := httptest.NewServer(h.Wrap(mux))
	defer srv.Close()
	do := func(method, path string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			if path != "/panic" {
				t.Fatal(err)
			}
			return
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	do("GET", "/files/secret/diary.md?access_token=CANARY")
	do("GET", "/files/x")
	do("POST", "/fail")
	do("GET", "/nothing")
	do("POST", "/panic")
	do("GET", "/no/such/page")
	do("pwn", "/nothing") // Attack: a client creates a label for each word that it invents
	srv.Close()           // waits for the handlers

	page := scrape(t, m)
	const n = "satchel_http_request_duration_seconds_count"
	wantLines(t, page,
		n+`{method="GET",route="GET /files/{path...}",status="200"} 2`,
		n+`{method="POST",route="POST /fail",status="418"} 1`,
		n+`{method="GET",route="/nothing",status="200"} 1`,
		n+`{method="POST",route="/panic",status="500"} 1`,
		n+`{method="GET",route="unmatched",status="404"} 1`,
		n+`{method="other",route="/nothing",status="200"} 1`,
		"satchel_http_requests_in_flight 0",
		`satchel_build_info{version="v1"} 1`,
	)
	if strings.Contains(page, "diary") || strings.Contains(page, "pwn") {
		t.Error("the metrics hold what clients sent")
	}
	if s := logged.String(); strings.Count(s, "msg=request") != 7 || strings.Contains(s, "diary") || strings.Contains(s, "CANARY") || strings.Contains(s, "pwn") || strings.Count(s, "request_id=") != 7 {
		t.Errorf("the log:\n%s", s)
	}
}

func TestRequestIDIsOurs(t *testing.T) {
	h := telemetry.NewHTTP(telemetry.NewMetrics("v1"), nil)
	seen := map[string]bool{}
	for _, sent := range []string{"", "chosen-by-client", "x\" level=ERROR msg=\"forged"} {
		var inside, header string
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		if sent != "" {
			r.Header.Set(telemetry.RequestIDHeader, sent)
		}
		h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inside, header = telemetry.RequestID(r.Context()), r.Header.Get(telemetry.RequestIDHeader)
		})).ServeHTTP(w, r)
		if inside == "" || inside == sent || header != "" || w.Header().Get(telemetry.RequestIDHeader) != inside || seen[inside] {
			t.Errorf("sent %q: context %q, handler's header %q, answer's %q", sent, inside, header, w.Header().Get(telemetry.RequestIDHeader))
		}
		seen[inside] = true
		if r.Header.Get(telemetry.RequestIDHeader) != sent {
			t.Error("the caller's request was changed")
		}
	}
	if telemetry.RequestID(t.Context()) != "" {
		t.Error("a context without an id has one")
	}
}

// An event stream arrives as it is written, with working deadlines. It counts as in flight, but
// not in the latency.
func TestStreamsFlowThrough(t *testing.T) {
	m := telemetry.NewMetrics("v1")
	release := make(chan struct{})
	h := telemetry.NewHTTP(m, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			t.Errorf("ResponseController: %v", err)
		}
		io.WriteString(w, "data: 1\n")
		w.(http.Flusher).Flush()
		<-release
		io.WriteString(w, "data: 2\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("ResponseController: %v", err)
		}
	})
	srv := httptest.NewServer(h.Wrap(mux))
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() || lines.Text() != "data: 1" {
		t.Fatalf("the first event did not arrive: %q", lines.Text())
	}
	wantLines(t, scrape(t, m), "satchel_http_requests_in_flight 1")
	close(release)
	if !lines.Scan() || lines.Text() != "data: 2" {
		t.Fatalf("the second event did not arrive: %q", lines.Text())
	}
	res.Body.Close()
	srv.Close()
	page := scrape(t, m)
	wantLines(t, page, "satchel_http_requests_in_flight 0")
	if strings.Contains(page, `route="GET /events"`) {
		t.Error("a listening stream counts as a slow request")
	}
}

func TestMetrics(t *testing.T) {
	m := telemetry.NewMetrics("v1")
	c := m.Counter("pushes_total", "Pushes.", "result")
	c.Inc("ok")
	c.Add(2, "failed")
	m.Counter("never_total", "Nothing yet.")
	g := m.Gauge("queue", "Waiting.")
	g.Set(5)
	g.Add(-2)
	m.GaugeFunc("now", "Asked.", func() float64 { return 7 })
	m.Histogram("start_seconds", "Starts.", telemetry.LatencyBuckets(), "kind").Observe(0.3, "cold")
	wantLines(t, scrape(t, m),
		`satchel_pushes_total{result="ok"} 1`, `satchel_pushes_total{result="failed"} 2`, "satchel_never_total 0",
		"satchel_queue 3", "satchel_now 7",
		`satchel_start_seconds_bucket{kind="cold",le="0.2"} 0`, `satchel_start_seconds_bucket{kind="cold",le="0.5"} 1`)
	if page := scrape(t, m); !strings.Contains(page, "go_goroutines") {
		t.Error("the runtime's metrics are missing")
	}
	// Two registries are independent.
	telemetry.NewMetrics("v1").Counter("pushes_total", "Pushes.", "result")
}
