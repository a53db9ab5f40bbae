package gitstore

import (
	"container/list"
	"sync"
)

// objectCache keeps decoded objects of all spaces, least recently used out
// first. Keys name the repository too: an object is seen only through a space
// that has it.
type objectCache struct {
	mu    sync.Mutex
	max   int64
	size  int64
	order *list.List // of *cached, newest first
	items map[cacheKey]*list.Element
}

type cacheKey struct {
	db   *objectDB
	hash hash
}

type cached struct {
	key cacheKey
	obj object
}

// cacheOverhead is what an entry costs beside its data, roughly.
const cacheOverhead = 200

func newObjectCache(max int64) *objectCache {
	return &objectCache{max: max, order: list.New(), items: map[cacheKey]*list.Element{}}
}

func (c *objectCache) get(db *objectDB, h hash) (object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.items[cacheKey{db, h}]
	if !ok {
		return object{}, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*cached).obj, true
}

func (c *objectCache) put(db *objectDB, h hash, o object) {
	cost := int64(len(o.data)) + cacheOverhead
	if cost > c.max/16 {
		return // one large file must not push out every tree
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheKey{db, h}
	if _, ok := c.items[k]; ok {
		return
	}
	c.items[k] = c.order.PushFront(&cached{k, o})
	c.size += cost
	for c.size > c.max {
		c.remove(c.order.Back())
	}
}

// drop forgets a repository's objects.
func (c *objectCache) drop(db *objectDB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for el := c.order.Front(); el != nil; {
		next := el.Next()
		if el.Value.(*cached).key.db == db {
			c.remove(el)
		}
		el = next
	}
}

func (c *objectCache) remove(el *list.Element) {
	it := c.order.Remove(el).(*cached)
	delete(c.items, it.key)
	c.size -= int64(len(it.obj.data)) + cacheOverhead
}
