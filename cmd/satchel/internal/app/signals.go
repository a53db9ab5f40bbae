package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"satchel/internal/telemetry"
	"satchel/mcp"
	"satchel/sandbox"
	"satchel/sandbox/agent"
)

// signals is what a server tells of itself: metrics, and the logs of requests.
type signals struct {
	log     *slog.Logger
	metrics *telemetry.Metrics
	http    *telemetry.HTTP
	mcp     mcp.Observer
	sandbox sandbox.Metrics
}

func newSignals(s *Server) *signals {
	m := telemetry.NewMetrics(s.version)
	g := &signals{log: s.Log, metrics: m, http: telemetry.NewHTTP(m, s.Log)}

	calls := m.Histogram("mcp_request_duration_seconds", "MCP requests by method, tool and outcome.", telemetry.LatencyBuckets(), "method", "tool", "outcome")
	refused := m.Counter("mcp_refused_total", "MCP requests that were refused before they began.", "reason")
	g.mcp = mcp.Observer{
		Call: func(c mcp.CallInfo) {
			calls.Observe(c.Duration.Seconds(), c.Method, c.Tool, c.Outcome)
		},
		Refused: func(reason string) { refused.Inc(reason) },
	}

	starts := m.Histogram("sandbox_start_seconds", "Starts of sandboxes.", telemetry.LatencyBuckets(), "outcome")
	stops := m.Counter("sandbox_stops_total", "Ends of sandboxes by reason.", "reason")
	waits := m.Histogram("sandbox_wait_seconds", "How long starts waited for room.", telemetry.LatencyBuckets())
	commands := m.Histogram("sandbox_command_seconds", "Commands by how they ended.", telemetry.LatencyBuckets(), "end")
	collects := m.Histogram("sandbox_collect_seconds", "Collections that found changes.", telemetry.LatencyBuckets(), "outcome")
	g.sandbox = sandbox.Metrics{
		Started:   func(d time.Duration, err error) { starts.Observe(d.Seconds(), outcome(err)) },
		Stopped:   func(r sandbox.StopReason) { stops.Inc(string(r)) },
		Waited:    func(d time.Duration) { waits.Observe(d.Seconds()) },
		Command:   func(d time.Duration, end agent.End) { commands.Observe(d.Seconds(), string(ends[end])) },
		Collected: func(d time.Duration, _ int, err error) { collects.Observe(d.Seconds(), outcome(err)) },
	}
	return g
}

// watchPool adds the gauges of the pool.
func (g *signals) watchPool(p *sandbox.Pool) {
	g.metrics.GaugeFunc("sandboxes", "Sandboxes that are up.", func() float64 { return float64(p.Status().Sandboxes) })
	g.metrics.GaugeFunc("sandboxes_busy", "Sandboxes with a command or a job.", func() float64 { return float64(p.Status().Busy) })
	g.metrics.GaugeFunc("sandbox_queue", "Starts that wait for room.", func() float64 { return float64(p.Status().Queued) })
	g.metrics.GaugeFunc("sandbox_memory_bytes", "Memory of all sandboxes, as last measured.", func() float64 { return float64(p.Status().Memory) })
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// server returns an HTTP server that measures and logs its requests.
func (g *signals) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           g.http.Wrap(h),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.With("part", "http").Handler(), slog.LevelWarn),
		// No write timeout: a stream lives as long as its command. The protocol
		// edge bounds each single write.
	}
}

func (g *signals) requestID(ctx context.Context) string { return telemetry.RequestID(ctx) }
