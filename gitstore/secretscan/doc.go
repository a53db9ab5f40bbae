// Package secretscan finds secrets in what is about to be committed, by rules
// for the formats of keys and tokens. A remote that protects itself refuses a
// whole push for one key that somebody wrote down, and every push after it; a
// file with a key is therefore told of before it is part of the history.
//
// It promises:
//
//   - No finding, error, log record or row holds a secret: they name the rule,
//     the place and a fingerprint.
//   - Scan never panics, takes time in proportion to the content, whatever the
//     content is, and starts no goroutine.
//   - Nothing is compiled before the first Scan.
package secretscan
