// Package procmem measures the memory of processes (Of, Available), and releases memory that
// an idle process does not need (NewReclaimer, then Reclaimer.Watch).
//
// It needs Linux. On other systems its functions return zero values or errors, except that
// Reclaim returns free heap pages.
package procmem

// Usage is the memory of several processes.
type Usage struct {
	// PSS is the proportional set size in bytes: of a page that n processes map, each process
	// counts an n-th.
	PSS int64
	// Shmem is the part of PSS that is shared memory, including memfds.
	Shmem int64
	// Spaces is the number of address spaces.
	Spaces int
}
