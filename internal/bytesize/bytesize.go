// Package bytesize formats sizes for people in one way: with binary units, and never less
// than the size.
package bytesize

import "fmt"

// Text formats a number of bytes: "512 bytes", "64 KiB", "10.1 MiB", "4 GiB". It rounds up,
// so that a size over a limit never looks like one below it.
func Text(n int64) string {
	unit, name := int64(1), "bytes"
	switch {
	case n == 1:
		return "1 byte"
	case n >= 10<<30:
		unit, name = 1<<30, "GiB"
	case n >= 1<<20:
		unit, name = 1<<20, "MiB"
	case n >= 10<<10:
		unit, name = 1<<10, "KiB"
	}
	tenths := (n/unit)*10 + (n%unit*10+unit-1)/unit
	if tenths%10 == 0 {
		return fmt.Sprintf("%d %s", tenths/10, name)
	}
	return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, name)
}
