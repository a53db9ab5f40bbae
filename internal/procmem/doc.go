// Package procmem measures the memory of processes, and releases memory that an idle
// process does not need.
//
// It needs Linux. On other systems its functions return zero values and do nothing.
package procmem

// Usage is the memory of several processes.
type Usage struct {
	// PSS is the proportional set size in bytes: a page that n processes map
	// counts as an n-th with each.
	PSS int64
	// Shmem is the part of PSS that is shared memory, memfds included.
	Shmem int64
	// Spaces is the number of address spaces that were counted.
	Spaces int
}
