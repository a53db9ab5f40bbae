package packfile

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache keeps decoded objects of all spaces and evicts the least recently used. Keys include
// the repository, so an object is only visible through a space that contains it.
type Cache struct {
	// Mu guards size and Items.
	Mu    sync.Mutex
	max   int64
	size  int64
	Items *simplelru.LRU[cacheKey, Object]
}

type cacheKey struct {
	DB   *DB
	Hash Hash
}

// cacheOverhead is the approximate size of an entry without its data.
const cacheOverhead = 200

func costOf(o Object) int64 { return int64(len(o.Data)) + cacheOverhead }

// NewCache returns a cache of at most max bytes.
func NewCache(max int64) *Cache {
	c := &Cache{max: max}
	// The LRU counts entries, but the limit of this cache is in bytes.
	c.Items, _ = simplelru.NewLRU(math.MaxInt, func(_ cacheKey, o Object) { c.size -= costOf(o) })
	return c
}

// Get returns an object of a repository if the cache has it.
func (c *Cache) Get(db *DB, h Hash) (Object, bool) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.Items.Get(cacheKey{db, h})
}

// Put adds an object, which must not change afterwards.
func (c *Cache) Put(db *DB, h Hash, o Object) {
	cost := costOf(o)
	if cost > c.max/16 {
		return // one large file must not evict every tree
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	k := cacheKey{db, h}
	if c.Items.Contains(k) {
		return
	}
	c.Items.Add(k, o)
	c.size += cost
	for c.size > c.max {
		c.Items.RemoveOldest()
	}
}

// Drop forgets a repository's objects.
func (c *Cache) Drop(db *DB) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, k := range c.Items.Keys() {
		if k.DB == db {
			c.Items.Remove(k)
		}
	}
}
