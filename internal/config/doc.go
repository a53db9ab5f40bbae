// Package config reads the configuration of Satchel (satchel.yaml, the environment and
// flags) into a [Config].
//
// A flag overrides the environment, which overrides the file, which overrides the default.
// Reading is strict: [Load] refuses an unknown key or a wrong type, with its place and the
// nearest known key. It reports all mistakes at once, and never shows the value of a secret
// key.
//
// The table in keys.go is the only list of the keys. The fields, the names in the
// environment, the flags, the checks and the reference documentation ([Document],
// [Example]) all come from it. To add a key, add its field to Config and its row to the
// table.
package config
