// Package database opens the one database in which every part of Satchel keeps its rows,
// and brings its tables up to date. The URL decides whether it is SQLite or PostgreSQL. Call
// [Open], then [DB.Migrate].
//
// Both databases give the same guarantees. What [DB.Transact] has committed survives a power
// loss. A transaction that fails or panics changes nothing. No value of a query and no
// password of a URL gets into a log or an error. A call ends when its context ends. The package
// has no tables except its own list of applied migrations. Each other package owns its tables
// and passes its [Migration]s, and no package refers to the tables of another.
//
// Rows store times as whole milliseconds since 1970 (see [Millis]). So both databases
// order, compare and return times alike, whatever their time zone.
package database
