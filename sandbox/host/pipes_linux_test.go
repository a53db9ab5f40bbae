package host

import "testing"

func TestTailKeepsTheEnd(t *testing.T) {
	l := NewTail(4)
	for _, c := range []struct{ write, want string }{{"ab", "ab"}, {"cd", "abcd"}, {"e", "…bcde"}, {"0123456789", "…6789"}, {"", "…6789"}} {
		if n, err := l.Write([]byte(c.write)); n != len(c.write) || err != nil {
			t.Errorf("writing %q: %d, %v", c.write, n, err)
		}
		if got := l.String(); got != c.want {
			t.Errorf("after %q: %q, want %q", c.write, got, c.want)
		}
	}
}
