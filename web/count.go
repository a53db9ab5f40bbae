package web

import "fmt"

// count writes a number of things for people, in groups of three digits: "12,345".
// Templates have numbers of more than one type.
func count[N int | int64](n N) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}
