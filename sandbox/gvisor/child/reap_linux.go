package child

import (
	"maps"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/gvisor/rundir"
)

// orphanTime bounds how long the processes of one look's orphans may take to
// end.
const orphanTime = 10 * time.Second

// reap destroys what is left of sandboxes that this owner does not have. An id
// is in live before anything of its sandbox is made, and until all of it was to
// be gone; so what carries another id belongs to nobody.
func (o *owner) reap() (int, error) {
	o.mu.Lock()
	before := maps.Clone(o.live) // what ends during the look is not yet anyone's to remove
	o.mu.Unlock()
	return rundir.ReapUnowned(o.conf.RunDir, orphanTime, func(id string) bool {
		_, owned := before[space.SandboxID(id)]
		return owned || o.find(space.SandboxID(id)) != nil
	})
}
