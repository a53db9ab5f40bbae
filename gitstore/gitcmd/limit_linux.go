package gitcmd

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limit bounds the memory of a process that has just begun, and of all that it
// starts: children have their parent's limits. It leaves no core files, which
// would hold the credential. A process that has ended already is none's trouble.
func limit(pid int, memory int64) error {
	if err := limitOne(pid, unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	if memory <= 0 {
		return nil
	}
	if err := limitOne(pid, unix.RLIMIT_DATA, uint64(memory)); err != nil {
		return err
	}
	// On a busy machine it may have been faster. Whom it starts from now on has
	// the limit, so this ends.
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil // it has ended, or the kernel does not tell
	}
	for _, f := range strings.Fields(string(list)) {
		child, err := strconv.Atoi(f)
		if err != nil {
			return fmt.Errorf("the list of a process's children: %w", err)
		}
		if err := limit(child, memory); err != nil {
			return err
		}
	}
	return nil
}

// limitOne sets a limit that nobody but root can raise again; one that is lower
// already stays.
func limitOne(pid, what int, value uint64) error {
	var old unix.Rlimit
	err := unix.Prlimit(pid, what, nil, &old)
	if err == nil {
		value = min(value, old.Max)
		err = unix.Prlimit(pid, what, &unix.Rlimit{Cur: value, Max: value}, nil)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
