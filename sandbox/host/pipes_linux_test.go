package host

import (
	"fmt"
	"testing"
)

func TestEndsKeepsBeginningAndEnd(t *testing.T) {
	type step struct{ write, want string }
	for _, c := range []struct {
		first, last int
		steps       []step
	}{
		{0, 4, []step{{"ab", "ab"}, {"cd", "abcd"}, {"e", "…bcde"}, {"0123456789", "…6789"}, {"", "…6789"}}},
		{2, 4, []step{{"a", "a"}, {"bcd", "abcd"}, {"ef", "abcdef"}, {"g", "ab…defg"}, {"0123456789", "ab…6789"}, {"", "ab…6789"}}},
		{2, 4, []step{{"0123456789", "01…6789"}, {"a", "01…789a"}}},
		{2, 4, []step{{"012345", "012345"}, {"6", "01…3456"}}},
	} {
		t.Run(fmt.Sprint(c.first, c.last, c.steps[0].write), func(t *testing.T) {
			e := NewEnds(c.first, c.last)
			for _, s := range c.steps {
				if n, err := e.Write([]byte(s.write)); n != len(s.write) || err != nil {
					t.Errorf("writing %q: %d, %v", s.write, n, err)
				}
				if got := e.String(); got != s.want {
					t.Errorf("after %q: %q, want %q", s.write, got, s.want)
				}
			}
		})
	}
}
