// Package commits reads and writes commit objects. Each has the trailers Satchel-Tool and
// Satchel-Client, which say what made it. Anybody can write such trailers, so they prove
// nothing.
package commits
