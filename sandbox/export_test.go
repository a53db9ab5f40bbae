package sandbox

import "time"

// Sweep is the housekeeping that New starts, at a time of the test's choice.
func (p *Pool) Sweep(now time.Time) { p.sweep(now) }

// SetExpiry moves the time by which all jobs must have ended.
func (p *Pool) SetExpiry(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.instances {
		for id, j := range b.jobs {
			j.expires = at
			b.jobs[id] = j
		}
	}
}

// Ending reports whether a sandbox has ended or is being stopped, and is not yet
// gone.
func (p *Pool) Ending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.instances {
		if b.state != live {
			return true
		}
	}
	return false
}

// Dropping reports whether a sandbox was stopped that is still starting.
func (p *Pool) Dropping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.starts {
		if s.dropped != nil {
			return true
		}
	}
	return false
}
