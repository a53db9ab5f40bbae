//go:build linux

package main

import (
	"slices"
	"time"
)

// times are the durations of one measurement.
type times []time.Duration

// add calls f, and adds the time that the call took.
func (t *times) add(f func() error) error {
	began := time.Now()
	err := f()
	*t = append(*t, time.Since(began))
	return err
}

// p returns the quantile q in milliseconds.
func (t times) p(q float64) float64 {
	s := slices.Clone(t)
	slices.Sort(s)
	i := min(int(q*float64(len(s))), len(s)-1)
	return float64(s[i]) / float64(time.Millisecond)
}

func (t times) median() float64 { return t.p(0.5) }
