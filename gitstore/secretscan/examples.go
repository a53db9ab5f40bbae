package secretscan

import "bytes"

// placeholders are texts that show that a secret is invented: fewer than 1 in 100,000 random
// keys contains such a text. They are in lower case.
var placeholders = [...]string{
	"example", "placeholder", "changeme", "redacted", "dummy", "yourkey", "yourtoken", "yoursecret", "your-", "your_", "insert", "replace",
	"xxxxx", "00000000", "12345678", "abcdefgh", "......", "-----", "____", "foobar", "fake-", "fake_",
}

// published returns fingerprints of keys that providers publish for examples and tests.
// They are hashes, because a secret scanner would find the keys in this file.
func published() []string {
	return []string{
		"1938c068ffef7eb430d3", // Azurite's account key
		"7229a510ea16f6ac86d9", // Stripe's test key
		"248b22cb4eadfded65be", // Standard Webhooks' example
		"df7c05de29e25335a81d", // Svix's example
	}
}

// isExample reports whether a secret is a placeholder.
func isExample(secret []byte) bool {
	low := bytes.ToLower(secret)
	for _, p := range placeholders {
		if bytes.Contains(low, []byte(p)) {
			return true
		}
	}
	return false
}

// awsSecret returns 40, the length of a secret access key, or 0 if the content begins with
// something else, such as a path. A key has digits and letters of both cases.
func awsSecret(content []byte) int {
	var upper, lower, digit bool
	for _, c := range content[:40] {
		upper = upper || c >= 'A' && c <= 'Z'
		lower = lower || c >= 'a' && c <= 'z'
		digit = digit || c >= '0' && c <= '9'
	}
	if upper && lower && digit {
		return 40
	}
	return 0
}
