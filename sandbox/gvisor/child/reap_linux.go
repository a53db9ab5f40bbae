package child

import (
	"errors"
	"maps"
	"os"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/gvisor/rundir"
)

// orphanTime is how long all orphaned processes of one reap together may take to end.
const orphanTime = 10 * time.Second

// reap destroys the remains of sandboxes that this owner does not have. The id of a sandbox is
// added to live before its first file is created, and deleted after its files are removed. So
// files with any other id belong to nobody.
func (o *owner) reap() (int, error) {
	o.mu.Lock()
	before := maps.Clone(o.live) // a sandbox that ends meanwhile may already be in a list that reap reads
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
