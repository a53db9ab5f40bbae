package child

import (
	"errors"
	"maps"
	"os"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/gvisor/rundir"
)

// orphanTime is how long the processes of the orphans found at once may take to end.
const orphanTime = 10 * time.Second

// reap destroys the remains of sandboxes that this owner does not have. An id is in live
// from before anything of its sandbox is created until everything is removed, so files with
// another id belong to nobody.
func (o *owner) reap() (int, error) {
	o.mu.Lock()
	before := maps.Clone(o.live) // sandboxes that end meanwhile may not be removed yet
	o.mu.Unlock()
	owned := func(id string) bool {
		_, owned := before[space.SandboxID(id)]
		return owned || o.find(space.SandboxID(id)) != nil
	}
	n, err := rundir.ReapUnowned(o.conf.RunDir, orphanTime, owned)
	places, rerr := os.ReadDir(placesDir(o.conf.RunDir))
	err = errors.Join(err, rerr)
	for _, e := range places {
		if !owned(e.Name()) {
			err = errors.Join(err, o.removePlaces(space.SandboxID(e.Name())))
		}
	}
	return n, err
}
