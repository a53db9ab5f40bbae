// Package arch enforces the architecture of docs/architecture.md. Its tests check that
// packages import only what their row of the table there allows, that each package has one
// package comment, that heavy dependencies have few importers, and that no test states a time
// limit (docs/testing.md).
package arch
