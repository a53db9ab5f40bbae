// Package telemetry is how the server tells what it does: structured logs with
// a request id and without secrets, and Prometheus metrics.
//
// It promises that a log record that passes its handler holds no API key, bearer
// token, password in a URL or value of an attribute that is named like a
// secret, wherever in the record it stands; that a request id is never one that
// a client chose; and that no metric has a label of unbounded values. It keeps
// no state in the package: loggers and registries are values that main makes
// and hands on. It is the only package that knows the Prometheus client.
package telemetry
