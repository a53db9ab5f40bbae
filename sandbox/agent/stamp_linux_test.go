package agent

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Linux gives many whiteouts one inode, by links that change its time: a
// deletion that the host knows must not look like another for it.
func TestWhiteoutsAreEqual(t *testing.T) {
	one := unix.Stat_t{Mode: unix.S_IFCHR, Ino: 7, Ctim: unix.Timespec{Sec: 1}}
	other := unix.Stat_t{Mode: unix.S_IFCHR, Ino: 9, Ctim: unix.Timespec{Sec: 2}}
	if stampOf(&one, false) != stampOf(&other, false) || !stampOf(&one, false).whiteout() {
		t.Error("two whiteouts differ")
	}
	device := unix.Stat_t{Mode: unix.S_IFCHR, Ino: 9, Rdev: unix.Mkdev(1, 3)}
	if stampOf(&device, false).whiteout() || stampOf(&device, false) == stampOf(&one, false) {
		t.Error("a device is taken for a whiteout")
	}
	file := unix.Stat_t{Mode: unix.S_IFREG, Ino: 7, Ctim: unix.Timespec{Sec: 1}}
	later := unix.Stat_t{Mode: unix.S_IFREG, Ino: 7, Ctim: unix.Timespec{Sec: 2}}
	if stampOf(&file, false) == stampOf(&later, false) {
		t.Error("a change of a file does not show")
	}
}
