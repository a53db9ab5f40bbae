package sandboxtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/sandbox/oci"
	"satchel/sandbox/sandboxtest"
)

// BenchmarkRuntimes measures, over every runtime in one run: from nothing to the
// first command's end, a warm `true`, and a search through 1,000 files of 10 kB.
func BenchmarkRuntimes(b *testing.B) {
	checkout := filepath.Join(b.TempDir(), "checkout")
	if err := os.Mkdir(checkout, 0o777); err != nil {
		b.Fatal(err)
	}
	page := []byte(strings.Repeat("A line of Markdown that is of no particular interest.\n", 190))
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(checkout, fmt.Sprintf("page-%04d.md", i)), page, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"gvisor", "crun", "runc"} {
		b.Run(name, func(b *testing.B) {
			r, err := runtimes[name](sandboxtest.RuntimeOptions{RunDir: filepath.Join(b.TempDir(), "run"), Logger: sandboxtest.Logger(b)})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			if err := r.Check(b.Context()); err != nil {
				b.Skip(err)
			}
			var cold, warm, search []time.Duration
			for b.Loop() {
				start := time.Now()
				s, c := benchSandbox(b, r, checkout)
				benchExec(b, c, "true")
				cold = append(cold, time.Since(start))
				for _, m := range []struct {
					command string
					took    *[]time.Duration
				}{{"true", &warm}, {"grep -rn nowhere . || true", &search}} {
					benchExec(b, c, m.command)
					for range 5 {
						time.Sleep(50 * time.Millisecond) // a client's pause
						start := time.Now()
						benchExec(b, c, m.command)
						*m.took = append(*m.took, time.Since(start))
					}
				}
				c.Close()
				if err := s.Stop(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			for unit, took := range map[string][]time.Duration{"ms-cold": cold, "ms-true": warm, "ms-grep": search} {
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, unit)
			}
		})
	}
}

func benchSandbox(b *testing.B, r space.Runtime, checkout string) (space.Sandbox, *agent.Client) {
	s, err := r.Start(b.Context(), space.SandboxSpec{
		ID: oci.NewID(), Seed: &space.Seed{Checkout: checkout},
		Limits: space.Limits{Memory: 512 << 20, Processes: 256, CPUs: 2},
	})
	if err != nil {
		b.Fatal(err)
	}
	c, err := agent.Connect(b.Context(), s.Conn(), agent.Boot{
		Disk: 256 << 20, Inodes: 100_000, Tmp: 64 << 20, Output: 16 << 20, Processes: 256, OpenFiles: 1024, FileSize: 128 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	return s, c
}

func benchExec(b *testing.B, c *agent.Client, command string) {
	res, err := c.Exec(b.Context(), agent.ExecRequest{Command: command, HeadTail: 16 << 10, WallTime: time.Minute}, nil)
	if err != nil || res.ExitCode != 0 {
		b.Fatalf("%s: %+v, %v", command, res, err)
	}
}
