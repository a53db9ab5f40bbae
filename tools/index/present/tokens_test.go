package present

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The counts in testdata/tokens.json are of the vocabularies o200k_base and
// cl100k_base (npm gpt-tokenizer 3), Llama 3 (npm llama3-tokenizer-js 1) and
// Claude's published one (npm @anthropic-ai/tokenizer 0.0.4). An answer that
// keeps its budget by our estimate keeps it by theirs, within these shares.
func TestTokenEstimateIsNoLessThanRealCounts(t *testing.T) {
	b, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Name   string
		Text   string
		Counts map[string]int
	}
	if err := json.Unmarshal(b, &rows); err != nil || len(rows) < 30 {
		t.Fatal(len(rows), err)
	}
	for _, r := range rows {
		got := EstimateTokens(r.Text)
		line := []string{}
		for _, tokenizer := range []string{"o200k_base", "cl100k_base", "llama3", "claude"} {
			want := r.Counts[tokenizer]
			least := map[string]float64{"o200k_base": 1, "cl100k_base": 0.8, "llama3": 0.8, "claude": 0.75}[tokenizer]
			if r.Name == "base64" {
				least = 0.75
			}
			share := float64(got) / float64(want)
			line = append(line, tokenizer, f2(share))
			if want == 0 || share < least {
				t.Errorf("%s: the estimate is %d, and %s counts %d", r.Name, got, tokenizer, want)
			}
		}
		if o := r.Counts["o200k_base"]; asciiText(r.Text) && got > 2*o {
			t.Errorf("%s: the estimate is %d, more than twice the %d of o200k_base", r.Name, got, o)
		}
		t.Log(r.Name, got, strings.Join(line, " "))
	}
}

func f2(f float64) string {
	b, _ := json.Marshal(float64(int(f*100)) / 100)
	return string(b)
}

func asciiText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f })
}

// No text is free: a budget bounds the bytes of an answer too.
func TestTokenEstimateGrowsWithEveryKindOfByte(t *testing.T) {
	for _, s := range []string{"a", "A", "0", " ", "\n", "\t", "-", "\x00", "é", "я", "漢", "\u0301", "\u200b", "\u202e", "😀", "\xff", "𐍈"} {
		if n := EstimateTokens(strings.Repeat(s, 16_000)); n < len(s)*16_000/16 {
			t.Errorf("%q 16,000 times costs %d", s, n)
		}
	}
	if n := EstimateTokens(""); n != 0 {
		t.Errorf("nothing costs %d", n)
	}
}
