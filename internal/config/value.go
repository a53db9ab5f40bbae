package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// codec reads and writes one type of value. The message about an invalid value says that the value
// must be form.
type codec[T any] struct {
	form   string   // the form of values, such as "a duration such as 45s, 10m or 90d"
	name   string   // the name of the type in the reference, such as "duration"
	tags   []string // tags of the YAML types that are accepted
	parse  func(string) (T, error)
	format func(T) string
}

const (
	durationForm = "a duration such as 45s, 10m, 1h30m or 90d"
	sizeForm     = "a size such as 512KiB, 10MiB or 1GiB"
)

var errForm = errors.New("not of the form")

var (
	str      = codec[string]{"a text", "text", []string{"!!str"}, func(s string) (string, error) { return s, nil }, func(s string) string { return s }}
	secret   = codec[Secret]{"a text", "text", []string{"!!str"}, func(s string) (Secret, error) { return Secret(s), nil }, func(s Secret) string { return string(s) }}
	integer  = codec[int]{"a whole number", "number", []string{"!!int"}, strconv.Atoi, func(n int) string { return strconv.Itoa(n) }}
	decimal  = codec[float64]{"a number", "number", []string{"!!int", "!!float"}, parseFloat, func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }}
	boolean  = codec[bool]{"true or false", "true, false", []string{"!!bool", "!!str"}, parseBool, strconv.FormatBool}
	duration = codec[time.Duration]{durationForm, "duration", []string{"!!str"}, ParseDuration, FormatDuration}
	size     = codec[int64]{sizeForm, "size", []string{"!!str", "!!int"}, ParseSize, FormatSize}
	// list is a sequence of texts in YAML. In flags and environment variables, commas separate the
	// texts.
	list = codec[[]string]{"a list of texts", "list", []string{"!!seq"}, parseList, func(l []string) string { return strings.Join(l, ",") }}
)

// enum returns the codec of a text from a fixed list.
func enum(values ...string) codec[string] {
	c := str
	c.form = "one of " + strings.Join(values, ", ")
	c.name = strings.Join(values, ", ")
	c.parse = func(s string) (string, error) {
		if !slices.Contains(values, s) {
			return "", errForm
		}
		return s, nil
	}
	return c
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errForm
}

func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, errForm
	}
	return f, nil
}

func parseList(s string) ([]string, error) {
	var out []string
	for f := range strings.SplitSeq(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

const day = 24 * time.Hour

// ParseDuration reads a duration like time.ParseDuration, with optional days at the start:
// "45s", "1h30m", "90d", "1d12h". Only 0 needs no unit.
func ParseDuration(s string) (time.Duration, error) {
	var days time.Duration
	rest := s
	if head, tail, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(head, 10, 32)
		if err != nil || time.Duration(n) > math.MaxInt64/day {
			return 0, fmt.Errorf("%q is not %s", s, durationForm)
		}
		days, rest = time.Duration(n)*day, tail
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "+") || days > 0 && (d < 0 || days > math.MaxInt64-d) {
		return 0, fmt.Errorf("%q is not %s", s, durationForm)
	}
	return days + d, nil
}

// FormatDuration formats a duration so that ParseDuration can read it. It leaves out zero units at
// the end: "10m" and not "10m0s".
func FormatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a size in bytes: "512KiB", "10MiB", "1.5GiB", "4096B" or "4096". Units
// are powers of 1024 with IEC names. "10MB" is refused, because people disagree on its
// meaning.
func ParseSize(s string) (int64, error) {
	bad := fmt.Errorf("%q is not %s", s, sizeForm)
	num, unit := s, int64(1)
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(s, u.name); ok {
			num, unit = strings.TrimSpace(head), u.bytes
			break
		}
	}
	if n, err := strconv.ParseUint(num, 10, 63); err == nil {
		if int64(n) > math.MaxInt64/unit {
			return 0, bad
		}
		return int64(n) * unit, nil
	}
	// Only a size in KiB or a larger unit may have a fraction. Exponents such as "1e3" are refused.
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || unit == 1 || strings.Trim(num, "0123456789.") != "" || f*float64(unit) >= math.MaxInt64 {
		return 0, bad
	}
	return int64(f * float64(unit)), nil
}

// FormatSize returns a size in bytes as a text in the largest unit that divides it.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
