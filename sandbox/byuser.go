package sandbox

import "satchel/internal/space"

// ByUser counts the sandboxes of each user that has any.
func (p *Pool) ByUser() map[space.UserID]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[space.UserID]int{}
	for k := range p.boxes {
		n[k.user]++
	}
	return n
}
