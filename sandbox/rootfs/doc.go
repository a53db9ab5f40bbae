// Package rootfs makes the root file system that an operator may give to
// sandboxes in place of the host's own /usr: a small Debian, fetched and
// verified by Debian's own programs (mmdebstrap or debootstrap, never a resolver
// of ours), without what a sandbox has no use for, and proven by a sandbox that
// ran over it before it is put in place. A build that fails leaves nothing
// behind, and never touches what was there before.
package rootfs
