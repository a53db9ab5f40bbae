// Package telemetry makes the server observable: structured logs with a request id
// and without secrets, and Prometheus metrics. Call NewLogger for the log, and NewMetrics and
// NewHTTP for the metrics.
//
// Guarantees: no log record that passes its handler contains an API key, a bearer token, a
// password in a URL, or the value of an attribute with the name of a secret, anywhere in the
// record. A client never chooses a request id. No metric has a label with unbounded values. The
// package keeps no state: main creates loggers and registries and passes them on. Only this
// package imports the Prometheus client.
package telemetry
