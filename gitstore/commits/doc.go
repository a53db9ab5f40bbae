// Package commits reads and encodes commit objects: call [Get] or [Encode]. The trailers
// Satchel-Tool and Satchel-Client of a commit name the tool and the client that made it.
// Anybody can write such trailers, so they prove nothing.
package commits
