package bytesize_test

import (
	"testing"

	"satchel/internal/bytesize"
)

func TestText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 3209: "3.2 kB", 10239: "10 kB", 10 << 10: "10 kB", 10<<10 + 1: "10.1 kB", 64 << 10: "64 kB",
		1 << 20: "1 MB", 10<<20 + 1: "10.1 MB", 512 << 20: "512 MB", 4 << 30: "4 GB", 64 << 30: "64 GB", 1<<63 - 1: "8589934592 GB",
	} {
		if got := bytesize.Text(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
