package tools_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"satchel/internal/space"
	"satchel/tools"
)

// Attack: a file of hundreds of thousands of headings, asked for one that it
// does not have, again and again.
func TestHeadingsOfAHostileFileAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&b, "# h%d\n", i)
	}
	set := newBench(t, map[string]string{"big.md": b.String()}, func(o *tools.Options) { o.Limits.HeadingBytes = 10_000 })
	check(t, set.call(t, "read", `{"paths":["big.md#h100"],"max_tokens":500}`), false, "h100")
	check(t, set.call(t, "read", `{"paths":["big.md#h299999"],"max_tokens":500}`), true, `no heading "h299999"`)
}

// counted reports how many bytes of content are being looked through at once.
type counted struct {
	*spaces
	now, most atomic.Int64
	wait      chan struct{}
}

func (c *counted) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	text, err := c.spaces.ReadBlob(ctx, id, b)
	n := c.now.Add(int64(len(text)))
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	<-c.wait
	c.now.Add(-int64(len(text)))
	return text, err
}

// Attack: many reads of large files at once, to take all the server's memory.
func TestReadsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := strings.Repeat("x\n", 5_000)
		ws := &counted{wait: make(chan struct{})}
		set := newBench(t, map[string]string{"a.md": file}, func(o *tools.Options) {
			ws.spaces = o.Workspace.(*spaces)
			o.Service, o.Workspace, o.Limits.BytesAtOnce = withoutCommands(o), ws, 25_000
		})
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() { set.call(t, "read", `{"paths":["a.md"]}`) })
		}
		synctest.Wait() // every call that may read is reading
		if got := ws.now.Load(); got != 20_000 {
			t.Errorf("%d bytes are looked through at once, want two files of the 25,000 that are allowed", got)
		}
		close(ws.wait)
		calls.Wait()
		if most := ws.most.Load(); most > 25_000 {
			t.Errorf("%d bytes were looked through at once", most)
		}
	})
}
