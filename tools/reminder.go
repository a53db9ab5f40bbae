package tools

import (
	"fmt"
	"sync"

	"satchel/internal/facts"
	"satchel/internal/space"
)

// manyChanges is how many files a conversation changes before it gets the reminder. One
// note with its index and a correction changes up to four files. Work on more files usually
// includes a decision or a preference that is worth a fact.
const manyChanges = 5

// Conversation records whether the reminder to save memory is due in a conversation. Each
// session of a client has its own. The zero value is a new conversation, and nil is a
// conversation that never gets a reminder. It is safe for concurrent use.
type Conversation struct {
	mu      sync.Mutex
	changed map[space.Path]bool // fewer than manyChanges files
	settled bool                // memory was saved, or the reminder was given
}

// saved records that the conversation has saved or removed memory.
func (v *Conversation) saved() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settled, v.changed = true, nil
}

// wrote records changed files. If the reminder is due, wrote returns the number of files that
// the conversation has changed, and otherwise 0.
func (v *Conversation) wrote(files []space.Path) int {
	if v == nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.settled {
		return 0
	}
	all := map[space.Path]bool{}
	for p := range v.changed {
		all[p] = true
	}
	for _, p := range files {
		if facts.Under(string(p)) {
			v.settled, v.changed = true, nil
			return 0
		}
		all[p] = true
	}
	if len(all) < manyChanges {
		v.changed = all
		return 0
	}
	v.settled, v.changed = true, nil
	return len(all)
}

// remind adds the reminder to the answer of a call that has changed files, if it is due.
func (s *Registry) remind(c Caller, changed []space.Path, r *Result) {
	n := c.Conversation.wrote(changed)
	if n == 0 {
		return
	}
	last := &r.Content[len(r.Content)-1]
	last.Text += s.named(fmt.Sprintf("\n[You changed %d files and saved no memory. If you learned something lasting about the user, call {remember}.]", n))
}
