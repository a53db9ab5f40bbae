// Package jsontext checks texts in JSON that encoding/json changes silently.
package jsontext

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// Unpaired is the public message for JSON for which Paired is false.
const Unpaired = `A text has half of a surrogate pair, such as \ud800, which is not a character. Write the character itself, or both halves.`

// Paired reports whether every surrogate that valid JSON escapes is part of a pair.
// encoding/json replaces other surrogates with U+FFFD, so a saved text would differ from the
// text that was sent.
func Paired(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return true
		}
		r, ok := escaped(raw[i:])
		if !ok {
			raw = raw[i+2:]
			continue
		}
		raw = raw[i+escapeBytes:]
		if !utf16.IsSurrogate(r) {
			continue
		}
		low, ok := escaped(raw)
		if !ok || utf16.DecodeRune(r, low) == '\ufffd' {
			return false
		}
		raw = raw[escapeBytes:]
	}
}

// escapeBytes is the length of an escape such as \u00e4.
const escapeBytes = 6

// escaped returns the code that an escape at the start of raw names.
func escaped(raw []byte) (r rune, ok bool) {
	if len(raw) < escapeBytes || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:escapeBytes]), 16, 16)
	return rune(n), err == nil
}
