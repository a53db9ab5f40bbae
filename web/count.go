package web

import "fmt"

// count writes a number of things for people, in groups of three digits: "12,345". It is
// of int or int64, as templates have both.
func count(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return grouped(int64(n)), nil
	case int64:
		return grouped(n), nil
	}
	return "", fmt.Errorf("%T is no number of things", n)
}

func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
