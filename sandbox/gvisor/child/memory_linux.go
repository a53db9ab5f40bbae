package child

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// memfdBytes returns how much memory the sentry holds for its programs and their file systems. Most
// of it is not mapped by any process at a given moment, so no resident set size includes it.
func memfdBytes(sentry int) int64 {
	dir := fmt.Sprintf("/proc/%d/fd", sentry)
	d, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	var total int64
	seen := map[uint64]bool{}
	for _, name := range names {
		p := dir + "/" + name
		target, err := os.Readlink(p)
		if err != nil || !strings.HasPrefix(target, "/memfd:") {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		total += st.Blocks * 512
	}
	return total
}
