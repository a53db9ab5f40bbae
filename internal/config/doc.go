// Package config reads the configuration of Satchel (satchel.yaml, the environment and
// flags) into a [Config].
//
// A flag overrides the environment, which overrides the file, which overrides the default.
// Reading is strict: [Load] refuses an unknown key or a wrong type. The error contains all
// mistakes at once, each with its place. For an unknown key, it suggests the nearest known key. It
// never contains the value of a secret key.
//
// The table in keys.go is the only list of the keys. The names of the variables, the flags,
// the checks and the reference documentation ([Document], [Example]) all come from it. To
// add a key, add its field to Config and its row to the table.
package config
