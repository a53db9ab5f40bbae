//go:build unix

package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// The benchmarks print medians in milliseconds. Run them with
// go test -run '^$' -bench . -benchtime 1x ./gitstore

// bigSpace creates a space of n files of about 1 KB, in directories of 100 files.
func bigSpace(b testing.TB, s *Store, n int) space.SpaceID {
	b.Helper()
	id := space.NewSpaceID()
	var cs space.ChangeSet
	for i := range n {
		cs.Changes = append(cs.Changes, space.Change{Path: bigPath(i), Content: fmt.Appendf(nil, "# Page %d\n\n%0900d\n", i, i)})
	}
	if _, err := s.Create(b.Context(), id, cs, space.Meta{Author: ada}); err != nil {
		b.Fatal(err)
	}
	return id
}

func bigPath(i int) string { return fmt.Sprintf("knowledge/d%03d/page-%05d.md", i/100, i) }

// median runs f n times and returns the median time in milliseconds.
func median(n int, f func(i int)) float64 {
	var ds []time.Duration
	for i := range n {
		start := time.Now()
		f(i)
		ds = append(ds, time.Since(start))
	}
	slices.Sort(ds)
	return float64(ds[n/2].Microseconds()) / 1000
}

func BenchmarkCommit(b *testing.B) {
	syncs := 0
	var delay time.Duration
	s := newStore(b, func(o *Options) {
		o.Sync = func(f *os.File) error {
			syncs++
			time.Sleep(delay)
			return f.Sync()
		}
	})
	id := bigSpace(b, s, 10_000)
	seed(b, s, id).Release()
	n := 0
	one := func(int) {
		p := bigPath(n * 37 % 10_000)
		n++
		commit(b, s, id, space.ChangeSet{Changes: []space.Change{{Path: p, Base: at(b, s, id, p), Content: fmt.Appendf(nil, "change %d", n)}}})
	}
	for b.Loop() {
		one(0)
		syncs = 0
		b.ReportMetric(median(200, one), "commit-ms")
		b.ReportMetric(float64(syncs)/200, "fsyncs")
		delay = 2 * time.Millisecond
		b.ReportMetric(median(50, one), "commit-slow-disk-ms")
		delay = 0
		s.work.Wait()

		dir := filepath.Join(b.TempDir(), "clone")
		git(b, b.TempDir(), "clone", "-q", s.repoDir(id), dir)
		git(b, dir, "config", "core.fsync", "all")
		b.ReportMetric(median(15, func(i int) {
			overwrite(b, filepath.Join(dir, bigPath(i*37)), fmt.Sprint("theirs ", i))
			git(b, dir, "add", "-A")
			git(b, dir, "commit", "-q", "-m", "x")
		}), "git-add-commit-ms")
	}
	b.ReportMetric(0, "ns/op")
}

func BenchmarkThousandPacks(b *testing.B) {
	s := newStore(b, func(o *Options) { o.Sync = func(*os.File) error { return nil } })
	id := bigSpace(b, s, 1000)
	for b.Loop() {
		for i := range 1000 {
			commit(b, s, id, writes(map[string]string{fmt.Sprint("n", i): fmt.Sprint(i)}))
		}
		r, release, _ := s.acquire(b.Context(), id)
		read := func(i int) {
			s.cache.Drop(r.db)
			if _, _, err := s.Open(b.Context(), id, "", space.Path(fmt.Sprint("n", i))); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(median(200, read)*1000, "cold-read-µs")
		b.ReportMetric(median(200, func(i int) { s.Open(b.Context(), id, "", space.Path(fmt.Sprint("n", i))) })*1000, "read-µs")
		b.ReportMetric(median(20, func(i int) { commit(b, s, id, writes(map[string]string{fmt.Sprint("m", i): "x"})) }), "commit-ms")
		b.ReportMetric(median(5, func(int) {
			db, err := packfile.Open(r.db.Dir, s.cache)
			if err != nil {
				b.Fatal(err)
			}
			db.Close()
		}), "open-ms")
		b.ReportMetric(median(1, func(int) {
			if err := s.Maintain(b.Context(), id); err != nil {
				b.Fatal(err)
			}
		}), "maintain-ms")
		release()
	}
	b.ReportMetric(0, "ns/op")
}

func BenchmarkSeed(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newStore(b)
			id := bigSpace(b, s, n)
			for b.Loop() {
				b.ReportMetric(median(5, func(int) {
					sd := seed(b, s, id)
					s.mu.Lock()
					r := s.open[id]
					s.mu.Unlock()
					sd.Release()
					s.work.Wait()
					r.forgetSeeds()
				}), "first-ms")
				seed(b, s, id).Release()
				b.ReportMetric(median(20, func(int) { seed(b, s, id).Release() }), "warm-ms")
				sd := seed(b, s, id)
				b.ReportMetric(median(10, func(i int) {
					commit(b, s, id, writes(map[string]string{fmt.Sprint("x", i): "x"}))
					wait(b, s, id)
				}), "commit-and-view-ms")
				b.ReportMetric(median(5, func(int) { gitIn(b, sd, "status", "--porcelain") }), "git-status-ms")
				sd.Release()
				s.work.Wait()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
