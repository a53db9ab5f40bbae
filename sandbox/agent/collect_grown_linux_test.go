package agent

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"satchel/sandbox/protocol"
)

// The next collection reports completely what a command appends during a collection:
// between the check of a file and its reading, every process is inspected, which leaves
// enough time for another command.
func TestCollectTellsWhatGrewMeanwhile(t *testing.T) {
	for _, c := range []struct{ name, meanwhile, then string }{
		{"appended", "echo two >> f", "\"f\"=one\ntwo\n\n"},
		{"replaced by a larger file", "echo one, two > g; mv g f", "\"f\"=one, two\n\n"},
		{"replaced by a smaller file", "echo 2 > g; mv g f", "\"f\"=2\n\n"},
		{"cut off", ": > f", "\"f\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostSpace(t)
			h.sh("echo one > f")
			find := h.findUse
			h.findUse = func() liveUse {
				h.findUse = find
				u := find()
				h.sh(c.meanwhile)
				return u
			}
			first := h.collected()
			if first != "\"f\" busy\n" {
				t.Errorf("half of it: %q", first)
			}
			if then := h.collected(); then != c.then {
				t.Errorf("first %q, then %q and not %q", first, then, c.then)
			}
			if again := h.collected(); again != "" {
				t.Errorf("told again: %q", again)
			}
		})
	}
}

// A command opens a file after every process was inspected, and is half done when the file
// is read. The collection waits for it, and does not report a partial file.
func TestCollectTellsNoHalfOfWhatIsBeingWritten(t *testing.T) {
	h := newHostSpace(t)
	h.sh("echo one > f; echo other > g")
	reached := false
	h.hooks.afterRead = func(name string) {
		if name != "f" || reached {
			return
		}
		reached = true
		f, err := os.OpenFile(filepath.Join(h.dir, name), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("two\n")
			f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	if got := h.collected(); got != "\"f\" busy\n\"g\"=other\n\n" || !reached {
		t.Errorf("%q %v", got, reached)
	}
	if got := h.collected(); got != "\"f\"=one\ntwo\n\n" {
		t.Errorf("then %q", got)
	}
	if got := h.collected(); got != "" {
		t.Errorf("told again: %q", got)
	}
}

// A command that opened a file right after every process was looked at, and
// pauses with half of it written until it has been read, is seen by the second
// look: it has the file open still, or has changed it before that.
func TestCollectWaitsForAWriterThatPauses(t *testing.T) {
	for _, c := range []struct {
		name     string
		then     func(h *hostSpace) liveUse // what the second look meets
		reported string                     // by the next collection
	}{
		{"open still", func(h *hostSpace) liveUse {
			st, err := os.Stat(filepath.Join(h.dir, "f"))
			must(t, err)
			return liveUse{writes: map[uint64]bool{st.Sys().(*syscall.Stat_t).Ino: true}}
		}, "\"f\"=one\n\n"},
		{"let go of just before", func(h *hostSpace) liveUse {
			h.sh("echo two >> f")
			return liveUse{}
		}, "\"f\"=one\ntwo\n\n"},
		{"gone", func(h *hostSpace) liveUse {
			h.sh("rm f")
			return liveUse{}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostSpace(t)
			h.sh("echo one > f")
			find, looks := h.findUse, 0
			h.findUse = func() liveUse {
				if looks++; looks == 1 {
					return liveUse{} // before it was opened
				}
				h.findUse = find
				return c.then(h)
			}
			if first := h.collected(); first != "\"f\" busy\n" {
				t.Errorf("half of it: %q", first)
			}
			if got := h.collected(); got != c.reported {
				t.Errorf("then %q, not %q", got, c.reported)
			}
		})
	}
}

// A stopped collection continues after the last reported path, even if that changes
// meanwhile or is rejected; a new collection reports the earlier paths.
func TestCollectGoesOnWhereItWasCut(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(h *hostSpace) // after the first batch
		except    []string           // of its acknowledgement
		reported  string             // by the batches after the first
		then      string             // by a new collection
	}{
		{"nothing", func(*hostSpace) {}, nil, "b/d e z", ""},
		{"a reported path changes", func(h *hostSpace) { h.sh("echo 2 > a") }, nil, "b/d e z", "a"},
		{"a reported path is refused", func(*hostSpace) {}, []string{"b/c"}, "b/d e z", "b/c"},
		{"a reported path is deleted", func(h *hostSpace) { h.sh("rm a") }, nil, "b/d e z", "a"},
		{"something comes before it", func(h *hostSpace) { h.sh("echo 1 > A; echo 1 > f") }, nil, "b/d e f z", "A"},
		{"the directory goes where it was cut", func(h *hostSpace) { h.sh("rm -r b") }, nil, "e z", "b b/c"},
		{"the directory becomes a file there", func(h *hostSpace) { h.sh("rm -r b; echo 1 > b") }, nil, "b e z", "b/c"},
		{"a file is applied before it", func(h *hostSpace) { h.apply([]protocol.ApplyEntry{put("0", "1"), del("nothing")}) }, nil, "b/d e z", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostSpace(t)
			h.sh("umask 022; echo 1 > z")
			h.collected()
			h.sh("rm z; echo 1 > a; mkdir b; echo 1 > b/c; echo 1 > b/d; echo 1 > e")
			b := h.batch(protocol.CollectLimits{Entries: 3})
			if got := paths(b); got != "a b b/c" || !b.More {
				t.Fatalf("%s %v", got, b.More)
			}
			c.meanwhile(h)
			must(t, h.ack(protocol.AckRequest{Batch: b.ID, Except: c.except}))
			reported := map[string]protocol.Entry{}
			for b.More {
				b = h.batch(protocol.CollectLimits{Entries: 1, After: b.ID})
				must(t, h.ack(protocol.AckRequest{Batch: b.ID}))
				maps.Copy(reported, byPath(b))
			}
			if got := joined(slices.Sorted(maps.Keys(reported))); got != c.reported {
				t.Errorf("told %s, not %s", got, c.reported)
			}
			if got := paths(h.batch(protocol.CollectLimits{})); got != c.then {
				t.Errorf("a new collection tells %q, not %q", got, c.then)
			}
		})
	}
}

func paths(b protocol.Batch) string { return joined(slices.Sorted(maps.Keys(byPath(b)))) }

func joined(s []string) string { return strings.Join(s, " ") }
