package web

import "testing"

func TestNumbersOfThings(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12_045: "12,045", 1_000_000: "1,000,000", 1_234_567: "1,234,567"} {
		if got, err := count(n); got != want || err != nil {
			t.Errorf("%d is written %q and not %q, %v", n, got, want, err)
		}
	}
}
