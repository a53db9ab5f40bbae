// Package arch keeps the architecture: its tests hold every package to the
// import table of docs/architecture.md and to exactly one package comment, every
// heavy dependency to the one package that may import it, and every test to the
// rule against time limits (docs/testing.md).
package arch
