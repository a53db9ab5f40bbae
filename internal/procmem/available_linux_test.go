package procmem

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAvailable(t *testing.T) {
	const mib = 1 << 20
	meminfo := map[string]string{"proc/meminfo": "MemTotal: 1048576 kB\nMemFree: 100 kB\nMemAvailable: 524288 kB\n"}
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"the machine alone": {nil, 512 * mib},
		"version 1, with a limit above": {map[string]string{
			"proc/self/cgroup":                    "4:memory:/a/b\n3:cpu:/x\n0::/\n",
			"cg/memory/a/memory.limit_in_bytes":   "314572800\n",
			"cg/memory/a/memory.usage_in_bytes":   "209715200\n",
			"cg/memory/a/memory.stat":             "inactive_file 1\ntotal_inactive_file 10485760\n",
			"cg/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
			"cg/memory/a/b/memory.usage_in_bytes": "1\n",
			"cg/memory/a/b/memory.stat":           "total_inactive_file 0\n",
			"cg/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"cg/memory/memory.usage_in_bytes":     "1\n",
			"cg/memory/memory.stat":               "total_inactive_file 0\n",
			"cg/memory/x/memory.limit_in_bytes":   "1\n",
			"cg/memory/x/memory.usage_in_bytes":   "1\n",
			"cg/memory/x/memory.stat":             "total_inactive_file 0\n",
		}, 110 * mib},
		"version 2": {map[string]string{
			"proc/self/cgroup":      "0::/s/t\n",
			"cg/s/t/memory.max":     "max\n",
			"cg/s/t/memory.current": "5\n",
			"cg/s/t/memory.stat":    "inactive_file 0\n",
			"cg/s/memory.max":       "104857600\n",
			"cg/s/memory.current":   "52428800\n",
			"cg/s/memory.stat":      "anon 1\ninactive_file 0\n",
		}, 50 * mib},
		"over its limit": {map[string]string{
			"proc/self/cgroup":  "0::/\n",
			"cg/memory.max":     "10\n",
			"cg/memory.current": "20\n",
			"cg/memory.stat":    "inactive_file 0\n",
		}, 0},
	} {
		dir := t.TempDir()
		for _, files := range []map[string]string{meminfo, c.files} {
			for f, content := range files {
				p := filepath.Join(dir, f)
				if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, err := available(filepath.Join(dir, "proc"), filepath.Join(dir, "cg")); got != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
	if n, err := Available(); n <= 0 || err != nil {
		t.Errorf("here: %d, %v", n, err)
	}
}
