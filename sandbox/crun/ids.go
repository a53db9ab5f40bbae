package crun

const (
	// idsEach is how many user and group ids a sandbox has: those that programs
	// expect, nobody's 65534 included.
	idsEach = 1 << 16
	// maxSlots is how many ranges of them there are; with the marks they end
	// before 0x7fff0000, from which on systemd has names for ids.
	maxSlots = 2048
	// The agent marks the processes of every command with a group id of its own,
	// from firstMark on. No file belongs to them, so all sandboxes share the
	// host's ids for them.
	firstMark = 1 << 20
	marks     = 1 << 24
)
