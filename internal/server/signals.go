package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"satchel/gitstore/remotes"
	"satchel/internal/acme"
	"satchel/internal/space"
	"satchel/internal/telemetry"
	"satchel/internal/usage"
	"satchel/mcp"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// signals holds the metrics and the request logs of a server.
type signals struct {
	log     *slog.Logger
	metrics *telemetry.Metrics
	http    *telemetry.HTTP
	mcp     mcp.Observer
	sandbox sandbox.Metrics
	remotes remotes.Metrics
	synced  func(space.SyncRun)
	called  *called
	usage   *usage.Counter // nil until the database is open
	refused *refused
	// limited counts the requests without a key that were refused because of the rate limit.
	limited telemetry.Counter
}

func newSignals(version string, log *slog.Logger) *signals {
	m := telemetry.NewMetrics(version)
	g := &signals{log: log, metrics: m, http: telemetry.NewHTTP(m, log), called: newCalled(time.Now), refused: newRefused(time.Now)}

	g.limited = m.Counter("auth_limited_total", "Requests without a key that were refused because their address asked too often.", "what")
	calls := m.Histogram("mcp_request_duration_seconds", "MCP requests by method, tool and outcome.", telemetry.LatencyBuckets(), "method", "tool", "outcome")
	refused := m.Counter("mcp_refused_total", "MCP requests that were refused before they began.", "reason")
	g.mcp = mcp.Observer{
		Call: func(c mcp.CallInfo) {
			calls.Observe(c.Duration.Seconds(), c.Method, c.Tool, c.Outcome)
			g.called.note(c.Grant, c.Client)
			g.count(c)
		},
		Refused: func(reason string) { refused.Inc(reason) },
	}

	starts := m.Histogram("sandbox_start_seconds", "Starts of sandboxes.", telemetry.LatencyBuckets(), "outcome")
	stops := m.Counter("sandbox_stops_total", "Ends of sandboxes by reason.", "reason")
	waits := m.Histogram("sandbox_wait_seconds", "How long starts waited for room.", telemetry.LatencyBuckets())
	commands := m.Histogram("sandbox_command_seconds", "Commands by how they ended.", telemetry.LatencyBuckets(), "end")
	collects := m.Histogram("sandbox_collect_seconds", "Collections that found changes.", telemetry.LatencyBuckets(), "outcome")
	held := m.Histogram("sandbox_held_seconds", "How long it took to store files that could not be committed.", telemetry.LatencyBuckets(), "outcome")
	reaped := m.Counter("sandbox_reaped_total", "Abandoned sandboxes whose remains were removed.")
	reapFailures := m.Counter("sandbox_reap_failures_total", "Failed searches for remains of abandoned sandboxes.")
	g.sandbox = sandbox.Metrics{
		Reaped: func(n int, err error) {
			reaped.Add(float64(n))
			if err != nil {
				reapFailures.Inc()
			}
		},
		Pending:   func(d time.Duration, _ int, err error) { held.Observe(d.Seconds(), outcome(err)) },
		Started:   func(d time.Duration, err error) { starts.Observe(d.Seconds(), outcome(err)) },
		Stopped:   func(r sandbox.StopReason) { stops.Inc(string(r)) },
		Waited:    func(d time.Duration) { waits.Observe(d.Seconds()) },
		Command:   func(d time.Duration, end protocol.End) { commands.Observe(d.Seconds(), end.String()) },
		Collected: func(d time.Duration, _ int, err error) { collects.Observe(d.Seconds(), outcome(err)) },
	}

	steps := m.Histogram("remote_step_seconds", "Steps of syncs with remotes (check, fetch, merge, push), by result.", telemetry.LatencyBuckets(), "step", "result")
	syncs := m.Histogram("remote_sync_seconds", "Syncs with remotes by result.", telemetry.LatencyBuckets(), "result")
	g.remotes = remotes.Metrics{
		Step:   func(step, result string, d time.Duration) { steps.Observe(d.Seconds(), step, result) },
		Synced: func(result string, d time.Duration) { syncs.Observe(d.Seconds(), result) },
	}

	runs := m.Histogram("source_sync_seconds", "Updates of sources by how they ended.", telemetry.LatencyBuckets(), "state")
	files := m.Counter("source_sync_files_total", "Files that updates of sources changed, by change.", "change")
	g.synced = func(r space.SyncRun) {
		runs.Observe(r.Ended.Sub(r.Started).Seconds(), string(r.State))
		if r.State != space.SyncReady {
			return
		}
		files.Add(float64(r.Added), "added")
		files.Add(float64(r.Changed), "changed")
		files.Add(float64(r.Renamed), "renamed")
		files.Add(float64(r.Deleted), "deleted")
	}
	return g
}

// bytesPerToken is the approximate size of a token in an answer. Counting tokens exactly would
// slow calls down.
const bytesPerToken = 4

// count counts a call of a tool for the charts of usage.
func (g *signals) count(c mcp.CallInfo) {
	if g.usage == nil || c.Tool == "" {
		return
	}
	a := usage.Amounts{Calls: 1, Tokens: int64(c.Answered / bytesPerToken)}
	switch c.Tool {
	case "search":
		a.Searches = 1
	case "bash", "bash_readonly":
		a.BashMS = c.Duration.Milliseconds()
	}
	g.usage.Add(space.ClientName(c.Client), a)
}

// watchSyncs adds the gauges of synced sources.
func (g *signals) watchSyncs(c *Core) {
	g.metrics.GaugeFunc("sources_synced", "Sources that follow an upstream.", func() float64 { return float64(c.syncs.Stats().Syncs) })
	g.metrics.GaugeFunc("sources_failing", "Sources whose last update did not succeed.", func() float64 { return float64(len(c.syncs.Stats().Failing)) })
	g.metrics.GaugeFunc("source_syncs", "Updates of sources that run.", func() float64 { return float64(c.syncs.Stats().Running) })
	g.metrics.GaugeFunc("source_oldest_sync_seconds", "The longest time since the last successful update of a source with a schedule.", func() float64 {
		return c.syncs.Stats().Oldest.Seconds()
	})
	g.metrics.GaugeFunc("source_files", "Files that sources with an upstream show.", func() float64 {
		n := 0
		for _, s := range c.sources.All() {
			if s.Upstream() {
				n += s.Files
			}
		}
		return float64(n)
	})
}

// watchRemotes adds the gauges of remotes.
func (g *signals) watchRemotes(r *remotes.Manager) {
	g.metrics.GaugeFunc("remotes", "Spaces that have a remote.", func() float64 { return float64(r.Stats().Remotes) })
	g.metrics.GaugeFunc("remote_queue", "Syncs with remotes that wait for their turn.", func() float64 { return float64(r.Stats().Queued) })
	g.metrics.GaugeFunc("remote_syncs", "Syncs with remotes that run.", func() float64 { return float64(r.Stats().Running) })
	g.metrics.GaugeFunc("remotes_failed", "Remotes whose last sync failed.", func() float64 {
		n := 0
		for _, of := range r.Stats().Failed {
			n += of
		}
		return float64(n)
	})
	g.metrics.GaugeFunc("remote_oldest_unpushed_seconds", "For how long the oldest commit has waited to be pushed.", func() float64 {
		return r.Stats().OldestUnpushed.Seconds()
	})
}

// watchCertificate adds the gauges of the domain's certificate.
func (g *signals) watchCertificate(m *acme.Manager) {
	g.metrics.GaugeFunc("certificate_seconds_left", "For how long the certificate of server.domain is good; negative without one.", func() float64 {
		end := m.Status().NotAfter
		if end.IsZero() {
			return -1
		}
		return time.Until(end).Seconds()
	})
	g.metrics.GaugeFunc("certificate_failures", "Failed attempts to get a certificate since the last successful one.", func() float64 {
		return float64(m.Status().Failures)
	})
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
		// There is no write timeout, because a stream lives as long as its command. The MCP
		// endpoint limits each write.
	}
}

func (g *signals) requestID(ctx context.Context) string { return telemetry.RequestID(ctx) }
