package gvisor_test

import (
	"context"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
)

// BenchmarkStart measures from nothing to the first answer of process 1, and
// the parts of it.
func BenchmarkStart(b *testing.B) {
	for _, v := range []struct {
		name   string
		change func(*gvisor.Options)
	}{
		{"default", func(*gvisor.Options) {}},
		{"no cgroups", func(o *gvisor.Options) { o.NoCgroups = true }},
		{"no directfs", func(o *gvisor.Options) { o.NoDirectFS = true }},
		{"ptrace", func(o *gvisor.Options) { o.Platform = "ptrace" }},
	} {
		b.Run(v.name, func(b *testing.B) {
			r := newRuntime(b, v.change)
			seed := newCheckout(b)
			limits := space.Limits{Memory: 1 << 30, Processes: 256, CPUs: 2}
			start(b, r, space.SandboxSpec{}) // the child is up
			var first, stop, idle float64
			for b.Loop() {
				s, err := r.Start(b.Context(), space.SandboxSpec{ID: oci.NewID(), Checkout: seed, Limits: limits})
				if err != nil {
					b.Fatal(err)
				}
				started := b.Elapsed()
				if _, err := tryBash(s, ":"); err != nil {
					b.Fatal(err)
				}
				answered := b.Elapsed()
				st, err := s.Stats(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				measured := b.Elapsed()
				if err := s.Stop(context.Background()); err != nil {
					b.Fatal(err)
				}
				first += float64((answered - started).Microseconds())
				stop += float64((b.Elapsed() - measured).Microseconds())
				idle += float64(st.Memory)
			}
			n := float64(b.N)
			b.ReportMetric(first/n/1000, "ms-first-bash")
			b.ReportMetric(stop/n/1000, "ms-stop")
			b.ReportMetric(idle/n/1e6, "MB-idle")
		})
	}
}
