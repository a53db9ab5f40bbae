package postings

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"satchel/tools/index/segment"
)

// Cache keeps the rows of segments, entries of dictionaries and headers of documents that
// were read last, up to a limit in bytes. None of these changes, and no row or document
// number is used twice, so nothing in the cache becomes stale.
type Cache struct {
	mu    sync.Mutex
	limit int
	size  int
	rows  *simplelru.LRU[rowKey, cachedRow]
}

// rowKey names a row, a document, or a term. For a term, row is 0, which is not the number of
// any row.
type rowKey struct {
	db   *Database
	row  int64
	doc  bool
	term string
}

type cachedRow struct {
	key  rowKey
	data []byte
	term []segmentTerm // a term, in each segment where it was looked up
	head *Header       // the header of a document
}

// segmentTerm is a term in one segment.
type segmentTerm struct {
	// rows are the numbers of the segment's rows, which identify the segment. Only segments
	// without rows can share these numbers, and such segments contain no terms.
	rows  [2]int64
	entry segment.Entry
}

// rowOverhead is about how many bytes the cache itself takes for each row.
const rowOverhead = 280

// segmentTermBytes is how many bytes a term takes for each segment.
const segmentTermBytes = 64

// headerOverhead is about how many bytes a header takes besides its texts.
const headerOverhead = 120

func NewCache(limit int) *Cache {
	c := &Cache{limit: limit}
	// The bound of simplelru counts rows, but this cache is bounded in bytes.
	c.rows, _ = simplelru.NewLRU(math.MaxInt, func(_ rowKey, r cachedRow) { c.size -= r.size() })
	return c
}

func (c *Cache) get(d *Database, row int64) []byte {
	r, _ := c.find(rowKey{db: d, row: row})
	return r.data
}

func (c *Cache) find(k rowKey) (cachedRow, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rows.Get(k)
}

// put keeps a row, unless the row takes more than a 16th of the cache: one long list must not
// drive out everything else.
func (c *Cache) put(d *Database, row int64, data []byte) {
	c.keep(cachedRow{key: rowKey{db: d, row: row}, data: data})
}

func (c *Cache) keep(r cachedRow) {
	if r.size() > c.limit/16 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows.Remove(r.key)
	c.rows.Add(r.key, r)
	c.size += r.size()
	for c.size > c.limit {
		c.rows.RemoveOldest()
	}
}

func (r *cachedRow) size() int {
	n := len(r.data) + len(r.key.term) + segmentTermBytes*len(r.term) + rowOverhead
	if r.head != nil {
		n += len(r.head.Path) + len(r.head.Title) + len(r.head.Family) + headerOverhead
	}
	return n
}

// forget drops everything of a closed database.
func (c *Cache) forget(d *Database) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.rows.Keys() {
		if k.db == d {
			c.rows.Remove(k)
		}
	}
}
