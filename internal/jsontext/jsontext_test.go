package jsontext_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"satchel/internal/jsontext"
)

func TestPaired(t *testing.T) {
	for raw, want := range map[string]bool{
		`"tea"`:                    true,
		`"\u00e4 \n \\ \""`:        true,
		`"\ud83c\udf75"`:           true,
		`"\ufffd"`:                 true,
		`"\\ud800"`:                true, // a backslash and letters
		`"\\\\ud800"`:              true,
		`"\ud800"`:                 false,
		`"\udf75"`:                 false,
		`"\ud83c tea"`:             false,
		`"\ud83c\n"`:               false,
		`"\ud83c\ud83c\udf75"`:     false,
		`"\udf75\ud83c"`:           false,
		`"\\\ud800"`:               false,
		`{"a": ["\uD800", "b"]}`:   false,
		`{"\ud800": 1}`:            false,
		`"\ud83c\udf75 \ud83c`:     false,
		`"\`:                       true,
		`"\u12`:                    true,
		`"\ud83c\udf7`:             false,
		`"\ud83c\udf75\ud83c\udf7`: false,
	} {
		if got := jsontext.Paired([]byte(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

// FuzzPaired compares the result with what encoding/json does.
func FuzzPaired(f *testing.F) {
	f.Add(`"\ud83c\udf75"`)
	f.Add(`"\\\ud800"`)
	f.Fuzz(func(t *testing.T, raw string) {
		var text string
		if !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &text) != nil {
			return
		}
		replaced := 0
		for _, r := range text {
			if r == utf8.RuneError {
				replaced++
			}
		}
		if !jsontext.Paired([]byte(raw)) && replaced == 0 {
			t.Errorf("%s keeps its text", raw)
		}
	})
}
