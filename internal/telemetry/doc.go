// Package telemetry makes the server observable: structured logs with a request id
// and without secrets, and Prometheus metrics.
//
// It promises that a log record that passes its handler holds no API key, bearer
// token, password in a URL or value of an attribute that is named like a
// secret, anywhere in the record; that a request id is never one that
// a client chose; and that no metric has a label of unbounded values. It keeps
// no state: main makes loggers and registries and passes them on. It is the only
// package that imports the Prometheus client.
package telemetry
