package gitstore

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// objectCache keeps decoded objects of all spaces, least recently used out
// first. Keys name the repository too: an object is seen only through a space
// that has it.
type objectCache struct {
	mu    sync.Mutex
	max   int64
	size  int64
	items *simplelru.LRU[cacheKey, object]
}

type cacheKey struct {
	db   *objectDB
	hash hash
}

// cacheOverhead is what an entry costs beside its data, roughly.
const cacheOverhead = 200

func costOf(o object) int64 { return int64(len(o.data)) + cacheOverhead }

func newObjectCache(max int64) *objectCache {
	c := &objectCache{max: max}
	// Its own bound counts entries; ours are bytes.
	c.items, _ = simplelru.NewLRU(math.MaxInt, func(_ cacheKey, o object) { c.size -= costOf(o) })
	return c
}

func (c *objectCache) get(db *objectDB, h hash) (object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items.Get(cacheKey{db, h})
}

func (c *objectCache) put(db *objectDB, h hash, o object) {
	cost := costOf(o)
	if cost > c.max/16 {
		return // one large file must not push out every tree
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheKey{db, h}
	if c.items.Contains(k) {
		return
	}
	c.items.Add(k, o)
	c.size += cost
	for c.size > c.max {
		c.items.RemoveOldest()
	}
}

// drop forgets a repository's objects.
func (c *objectCache) drop(db *objectDB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.items.Keys() {
		if k.db == db {
			c.items.Remove(k)
		}
	}
}
