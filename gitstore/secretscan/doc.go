// Package secretscan finds secrets in files before they are committed, by rules for the
// formats of keys and tokens. Once a key is in the history, a remote with push protection
// refuses every push. Call New, then Scanner.Screen before each file is committed.
//
// The package guarantees:
//
//   - No finding, error, log record or row holds a secret: only the rule, the place
//     and a fingerprint.
//   - Scan never panics, takes time linear in the length of any content, and starts
//     no goroutine.
//   - Nothing is compiled before the first Scan.
package secretscan
