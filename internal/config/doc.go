// Package config is the one configuration of Satchel: satchel.yaml, the
// environment and flags, read into a [Config] of plain typed fields.
//
// A flag beats the environment, which beats the file, which beats the default.
// Reading is strict: [Load] refuses an unknown or ill-typed key, naming its
// place and the nearest known key, and it reports every mistake at once. It never
// repeats the value of a key that holds a secret.
//
// The table in keys.go is the only place that knows the keys: the fields, the
// environment's names, the flags, the checks and the reference documentation
// ([Document], [Example]) all come from it. To add a key, add its field to
// Config and its row to the table.
package config
