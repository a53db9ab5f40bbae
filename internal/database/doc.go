// Package database opens the one database that every part of Satchel keeps
// its rows in, SQLite or PostgreSQL by URL, and brings its tables up to date.
//
// It promises the same to its callers on both: what [DB.Transact] committed
// survives power loss; a failed or panicking transaction changes nothing; no
// value of a query and no password of a URL reaches a log or an error; every
// call ends with its context. It knows no tables but its own list of applied
// migrations: each package owns its tables and hands in its [Migration]s, and
// no package refers to another's.
//
// Rows keep times as whole milliseconds since 1970 (see [Millis]), so that both
// databases order, compare and return them alike whatever their time zone.
package database
