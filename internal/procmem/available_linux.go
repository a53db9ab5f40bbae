package procmem

import (
	"bufio"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Available returns how many bytes of memory processes can still take before the kernel must
// kill one: the least of what is left in the machine and in each cgroup of this process.
func Available() (int64, error) { return available("/proc", "/sys/fs/cgroup") }

func available(proc, cgroups string) (int64, error) {
	info, err := fields(filepath.Join(proc, "meminfo"))
	if err != nil {
		return 0, err
	}
	kib, ok := info["MemAvailable:"]
	if !ok {
		return 0, errors.New("the kernel does not report how much memory is available")
	}
	least := kib << 10
	file, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return least, nil // no cgroups
	}
	for line := range strings.Lines(string(file)) {
		// id:controllers:path
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		v1 := strings.Contains(","+f[1]+",", ",memory,")
		if !v1 && f[1] != "" {
			continue
		}
		mount := cgroups
		if v1 {
			mount = filepath.Join(cgroups, "memory")
		}
		for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
			if left, ok := leftIn(filepath.Join(mount, dir), v1); ok {
				least = min(least, left)
			}
			if dir == "/" {
				break
			}
		}
	}
	return max(0, least), nil
}

// leftIn returns the memory that is left in one cgroup, including file pages that the kernel
// can drop. ok is false if the cgroup has no limit or does not report it.
func leftIn(dir string, v1 bool) (left int64, ok bool) {
	limit, usage, inactive := "memory.max", "memory.current", "inactive_file"
	if v1 {
		limit, usage, inactive = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	}
	l, err1 := number(filepath.Join(dir, limit))
	u, err2 := number(filepath.Join(dir, usage))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	stat, err := fields(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, false
	}
	return l - u + stat[inactive], true
}

func number(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is not a number
}

// fields reads a file in which each line is a name and a number.
func fields(file string) (map[string]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]int64{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		words := strings.Fields(s.Text())
		if len(words) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			out[words[0]] = n
		}
	}
	return out, s.Err()
}
