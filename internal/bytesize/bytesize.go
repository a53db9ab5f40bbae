// Package bytesize formats sizes for people in one way, and rounds them up. Call [Text].
package bytesize

import "fmt"

// Text formats a number of bytes: "512 bytes", "3.2 kB", "10.1 MB", "4 GB". Each unit is 1024
// of the next smaller one, as in the configuration. Text rounds up, so that a size over a limit
// never looks like one below it.
func Text(n int64) string {
	unit, name := int64(1), "bytes"
	switch {
	case n == 1:
		return "1 byte"
	case n >= 1<<30:
		unit, name = 1<<30, "GB"
	case n >= 1<<20:
		unit, name = 1<<20, "MB"
	case n >= 1<<10:
		unit, name = 1<<10, "kB"
	}
	tenths := (n/unit)*10 + (n%unit*10+unit-1)/unit
	if tenths%10 == 0 {
		return fmt.Sprintf("%d %s", tenths/10, name)
	}
	return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, name)
}
