package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// prefix is the beginning of the names of Satchel's own metrics.
const prefix = "satchel_"

// Metrics is a registry of metrics. A server has one, and each test creates its own.
//
// The methods that register a metric panic if its name is invalid or already registered. Names
// are constants of the program, so the first start of the server finds such errors.
type Metrics struct{ reg *prometheus.Registry }

// NewMetrics returns a registry with the metrics of the Go runtime and of the
// process, and satchel_build_info with the program's version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry()}
	m.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Gauge("build_info", "1, with the program's version.", "version").Set(1, version)
	return m
}

// Handler serves the metrics in the format of Prometheus. It requires no authentication, so
// serve it at a separate address.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{Registry: m.reg, MaxRequestsInFlight: 4})
}

// Counter is a number that only grows, one for each combination of label values. Label values
// must come from a small fixed set, and never from a request.
type Counter struct{ vec *prometheus.CounterVec }

// Counter registers satchel_NAME. By convention, NAME ends in _total.
func (m *Metrics) Counter(name, help string, labels ...string) Counter {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.reg.MustRegister(vec)
	if len(labels) == 0 {
		vec.WithLabelValues() // so that the page shows 0 before the first event
	}
	return Counter{vec}
}

// Add adds n, which must not be negative, to the counter of the label values,
// given in the order of the labels.
func (c Counter) Add(n float64, values ...string) { c.vec.WithLabelValues(values...).Add(n) }

// Inc adds 1.
func (c Counter) Inc(values ...string) { c.vec.WithLabelValues(values...).Inc() }

// Gauge is a number that grows and shrinks; see Counter for labels.
type Gauge struct{ vec *prometheus.GaugeVec }

// Gauge registers satchel_NAME.
func (m *Metrics) Gauge(name, help string, labels ...string) Gauge {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	m.reg.MustRegister(vec)
	if len(labels) == 0 {
		vec.WithLabelValues()
	}
	return Gauge{vec}
}

// Set sets the gauge of the label values.
func (g Gauge) Set(n float64, values ...string) { g.vec.WithLabelValues(values...).Set(n) }

// Add adds n, which may be negative.
func (g Gauge) Add(n float64, values ...string) { g.vec.WithLabelValues(values...).Add(n) }

// GaugeFunc registers satchel_NAME, whose value f returns at each scrape. f must be
// quick and safe for concurrent use.
func (m *Metrics) GaugeFunc(name, help string, f func() float64) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, f))
}

// Histogram counts observations by size; see Counter for labels.
type Histogram struct{ vec *prometheus.HistogramVec }

// Histogram registers satchel_NAME with the ascending upper bounds of its buckets. By
// convention, NAME ends in its unit, _seconds or _bytes.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) Histogram {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	m.reg.MustRegister(vec)
	if len(labels) == 0 {
		vec.WithLabelValues()
	}
	return Histogram{vec}
}

// Observe counts one observation.
func (h Histogram) Observe(v float64, values ...string) { h.vec.WithLabelValues(values...).Observe(v) }

// LatencyBuckets returns bounds in seconds. They reach from half a millisecond, which is less
// than a token check and a read take, to the ten minutes that a command may take.
func LatencyBuckets() []float64 {
	return []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 600}
}
