// Package arch keeps the architecture: its tests hold every package to the
// import table of docs/architecture.md, to exactly one package comment, and
// every heavy dependency to the one package that may import it.
package arch
