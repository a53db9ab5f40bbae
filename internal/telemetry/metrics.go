package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// prefix begins the names of all our metrics.
const prefix = "satchel_"

// Metrics is one registry of metrics. A server makes one; tests make their own.
//
// Its methods that register panic where a name is registered twice or is not
// a valid one: names are constants of the program, and the first start of the
// server shows it.
type Metrics struct{ reg *prometheus.Registry }

// NewMetrics returns a registry with the metrics of the Go runtime and of the
// process, and satchel_build_info with the program's version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry()}
	m.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Gauge("build_info", "1, with the program's version.", "version").Set(1, version)
	return m
}

// Handler serves the metrics in Prometheus' format. It asks for no
// authentication, so it belongs on an address of its own.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{Registry: m.reg, MaxRequestsInFlight: 4})
}

// Counter is a number that only grows, one for each combination of label
// values. Label values must come from a small fixed set: never from a request.
type Counter struct{ vec *prometheus.CounterVec }

// Counter registers satchel_NAME; by custom NAME ends in _total.
func (m *Metrics) Counter(name, help string, labels ...string) Counter {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.reg.MustRegister(vec)
	if len(labels) == 0 {
		vec.WithLabelValues() // shown as 0 before the first event
	}
	return Counter{vec}
}

// Add adds n, which must not be negative, to the counter of the label values,
// given in the order of the labels.
func (c Counter) Add(n float64, values ...string) { c.vec.WithLabelValues(values...).Add(n) }

// Inc adds 1.
func (c Counter) Inc(values ...string) { c.vec.WithLabelValues(values...).Inc() }

// Gauge is a number that goes up and down; see Counter for labels.
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

// CounterFunc is GaugeFunc for a number that only grows.
func (m *Metrics) CounterFunc(name, help string, f func() float64) {
	m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help}, f))
}

// Histogram counts observations by size; see Counter for labels.
type Histogram struct{ vec *prometheus.HistogramVec }

// Histogram registers satchel_NAME with upper bounds of its buckets, ascending;
// by custom NAME ends in its unit, _seconds or _bytes.
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

// LatencyBuckets reach from half a millisecond, under a token check and a read,
// to the ten minutes that a command may take, in seconds.
func LatencyBuckets() []float64 {
	return []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 600}
}
