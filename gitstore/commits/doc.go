// Package commits reads and writes commit objects. The trailers Satchel-Tool and
// Satchel-Client of a commit say what made it. Anybody can write such trailers, so they
// prove nothing.
package commits
