package bytesize_test

import (
	"testing"

	"satchel/internal/bytesize"
)

func TestText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 10239: "10239 bytes", 10 << 10: "10 KiB", 10<<10 + 1: "10.1 KiB", 64 << 10: "64 KiB",
		1 << 20: "1 MiB", 10<<20 + 1: "10.1 MiB", 512 << 20: "512 MiB", 4 << 30: "4096 MiB", 64 << 30: "64 GiB", 1<<63 - 1: "8589934592 GiB",
	} {
		if got := bytesize.Text(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
