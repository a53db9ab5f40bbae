// Package procmem tells how much memory processes use, and gives back what a
// process that idles has no use for.
//
// It needs Linux; elsewhere its functions tell nothing and do nothing.
package procmem

// Usage is what processes use together.
type Usage struct {
	// PSS is the proportional set size in bytes: a page that n processes map
	// counts as an n-th with each.
	PSS int64
	// Shmem is the part of PSS that is shared memory, memfds included.
	Shmem int64
	// Spaces is the number of address spaces that were counted.
	Spaces int
}
