package ratelimit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) forward(d time.Duration) { c.t = c.t.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)} }

// spend takes until the bucket is empty, and returns how many were allowed.
func spend(l *Limiter, key string, most int) int {
	for n := range most {
		if _, ok := l.Allow(key); !ok {
			return n
		}
	}
	return most
}

func TestBurstThenRate(t *testing.T) {
	for _, tt := range []struct {
		name         string
		o            Options
		burst        int
		interval     time.Duration // in which one comes back
		after, again int           // intervals that pass, and what is allowed then
	}{
		{"a rate and a burst", Options{PerMinute: 60, Burst: 5}, 5, time.Second, 3, 3},
		{"no more than the burst comes back", Options{PerMinute: 60, Burst: 5}, 5, time.Second, 100, 5},
		{"one per hour", Options{PerMinute: 1.0 / 60, Burst: 2}, 2, time.Hour, 1, 1},
		{"many per second", Options{PerMinute: 60_000, Burst: 10}, 10, time.Millisecond, 10, 10},
		{"a burst of one", Options{PerMinute: 60, Burst: 1}, 1, time.Second, 1, 1},
		{"without options", Options{}, 60, time.Second, 2, 2},
		{"without a burst, a minute's", Options{PerMinute: 2.5}, 3, 24 * time.Second, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock()
			tt.o.Now = c.now
			l := New(tt.o)
			if n := spend(l, "a", 1000); n != tt.burst {
				t.Fatalf("%d were allowed at once, not %d", n, tt.burst)
			}
			wait, ok := l.Allow("a")
			if ok || wait != tt.interval {
				t.Fatalf("the next must wait %v, not %v (%v)", tt.interval, wait, ok)
			}
			c.forward(wait - 1)
			if wait, ok := l.Allow("a"); ok || wait != 1 {
				t.Fatalf("a nanosecond before: %v %v", wait, ok)
			}
			c.forward(1)
			if _, ok := l.Allow("a"); !ok {
				t.Fatal("refused after the wait that was named")
			}
			c.forward(time.Duration(tt.after) * tt.interval)
			if n := spend(l, "a", 1000); n != tt.again {
				t.Fatalf("%d were allowed after %d intervals, not %d", n, tt.after, tt.again)
			}
		})
	}
}

func TestRefusalsCostNothing(t *testing.T) {
	c := newClock()
	l := New(Options{PerMinute: 60, Burst: 1, Now: c.now})
	l.Allow("a")
	for range 1000 {
		if _, ok := l.Allow("a"); ok {
			t.Fatal("allowed")
		}
	}
	c.forward(time.Second)
	if _, ok := l.Allow("a"); !ok {
		t.Fatal("who was refused has to wait longer for it")
	}
}

func TestKeysDoNotShare(t *testing.T) {
	c := newClock()
	l := New(Options{PerMinute: 1, Burst: 1, Now: c.now})
	for _, k := range []string{"", "a", "b", "a ", strings.Repeat("a", 1<<16)} {
		if _, ok := l.Allow(k); !ok {
			t.Errorf("the first of %.10q is refused", k)
		}
		if _, ok := l.Allow(k); ok {
			t.Errorf("the second of %.10q is allowed", k)
		}
	}
}

func TestNilAllowsEverything(t *testing.T) {
	var l *Limiter
	if wait, ok := l.Allow("a"); !ok || wait != 0 {
		t.Error(wait, ok)
	}
}

func TestExtremeLimitsDoNotOverflow(t *testing.T) {
	for _, o := range []Options{
		{PerMinute: 1e-12, Burst: math.MaxInt32},
		{PerMinute: 1e-300, Burst: 1},
		{PerMinute: math.Inf(1), Burst: 1},
		{PerMinute: math.NaN(), Burst: 3},
		{PerMinute: -1, Burst: -1, MaxKeys: -1},
		{PerMinute: 1e12, Burst: 1},
	} {
		c := newClock()
		o.Now = c.now
		l := New(o)
		if _, ok := l.Allow("a"); !ok {
			t.Errorf("%+v: the first is refused", o)
		}
		c.forward(200 * 365 * 24 * time.Hour)
		if wait, ok := l.Allow("a"); !ok && wait <= 0 {
			t.Errorf("%+v: after 200 years: %v %v", o, wait, ok)
		}
		c.t = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
		if wait, ok := l.Allow("a"); !ok && wait <= 0 {
			t.Errorf("%+v: in the year 1: %v %v", o, wait, ok)
		}
	}
}

// A flood of other names must not give who is over the limit a new bucket, nor
// take all others' with it.
func TestFloodOfKeysForgetsNobodyWhoSpentMore(t *testing.T) {
	const keys = 1000
	c := newClock()
	l := New(Options{PerMinute: 1, Burst: 10, MaxKeys: keys, Now: c.now})
	for i := range keys / 2 {
		if n := spend(l, fmt.Sprint("spent ", i), 1000); n != 10 {
			t.Fatal(n)
		}
	}
	for i := range 100 * keys {
		if _, ok := l.Allow(fmt.Sprint("flood ", i)); !ok {
			t.Fatal("a new key is refused: honest newcomers would be, too")
		}
		if i%1000 == 0 {
			c.forward(time.Millisecond)
		}
	}
	if len(l.bucket) > keys || len(l.at) > keys {
		t.Fatalf("%d buckets and %d keys are kept of at most %d", len(l.bucket), len(l.at), keys)
	}
	for i := range keys / 2 {
		if _, ok := l.Allow(fmt.Sprint("spent ", i)); ok {
			t.Fatalf("the flood gave key %d a new bucket", i)
		}
	}
}

func TestFullBucketsAreForgotten(t *testing.T) {
	c := newClock()
	l := New(Options{PerMinute: 60, Burst: 1, MaxKeys: 1 << 20, Now: c.now})
	for i := range 10_000 {
		l.Allow(fmt.Sprint(i))
	}
	c.forward(time.Hour)
	for i := range 10_000 {
		l.Allow(fmt.Sprint("later ", i))
		c.forward(time.Minute)
	}
	if len(l.bucket) > 2 {
		t.Errorf("%d buckets are kept, all but one of them full", len(l.bucket))
	}
}

// The heap against a plain map, under random keys and times.
func TestSameAsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := newClock()
	l := New(Options{PerMinute: 60, Burst: 3, MaxKeys: 1000, Now: c.now})
	left, at := map[string]float64{}, map[string]time.Time{}
	for i := range 200_000 {
		k := fmt.Sprint(r.IntN(500))
		if r.IntN(10) == 0 {
			c.forward(time.Duration(r.IntN(250)) * time.Millisecond)
		}
		have, ok := left[k]
		if !ok {
			have = 3
		} else {
			have = min(3, have+c.t.Sub(at[k]).Seconds())
		}
		at[k] = c.t
		want := have > 1-1e-6
		if want {
			have--
		}
		left[k] = have
		if _, ok := l.Allow(k); ok != want {
			t.Fatalf("step %d, key %s: %v, though it has %v", i, k, ok, have)
		}
	}
	for k, i := range l.at {
		if l.bucket[i].key != k || i > 0 && l.bucket[(i-1)/2].full > l.bucket[i].full {
			t.Fatal("the heap is out of order")
		}
	}
}

func TestParallelRequestsGetTheBurstAlone(t *testing.T) {
	c := newClock()
	l := New(Options{PerMinute: 1, Burst: 50, MaxKeys: 4, Now: c.now})
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				l.Allow(fmt.Sprint(i))
				if _, ok := l.Allow("a"); ok {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := allowed.Load(); n != 50 {
		t.Errorf("%d were allowed, not 50", n)
	}
}

func TestReadyTakesNothing(t *testing.T) {
	c := newClock()
	l := New(Options{PerMinute: 60, Burst: 3, Now: c.now})
	for i := range 3 {
		for range 10 {
			if wait, ok := l.Ready("a"); !ok || wait != 0 {
				t.Fatalf("after %d: %v %v", i, wait, ok)
			}
		}
		l.Allow("a")
	}
	if wait, ok := l.Ready("a"); ok || wait != time.Second {
		t.Errorf("an empty bucket: %v %v", wait, ok)
	}
	if _, ok := l.Ready("b"); !ok || len(l.bucket) != 1 {
		t.Errorf("another key's: %v, %d keys are remembered", ok, len(l.bucket))
	}
	if _, ok := (*Limiter)(nil).Ready("a"); !ok {
		t.Error("a nil Limiter refuses")
	}
}
