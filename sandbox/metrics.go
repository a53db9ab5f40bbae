package sandbox

import (
	"time"

	"satchel/sandbox/agent"
)

func (m Metrics) started(d time.Duration, err error) {
	if m.Started != nil {
		m.Started(d, err)
	}
}

func (m Metrics) stopped(why StopReason) {
	if m.Stopped != nil {
		m.Stopped(why)
	}
}

func (m Metrics) waited(d time.Duration) {
	if m.Waited != nil {
		m.Waited(d)
	}
}

func (m Metrics) command(d time.Duration, end agent.End) {
	if m.Command != nil {
		m.Command(d, end)
	}
}

func (m Metrics) collected(d time.Duration, files int, err error) {
	if m.Collected != nil {
		m.Collected(d, files, err)
	}
}

func (m Metrics) reaped(n int, err error) {
	if m.Reaped != nil {
		m.Reaped(n, err)
	}
}

func (m Metrics) held(d time.Duration, files int, err error) {
	if m.Held != nil {
		m.Held(d, files, err)
	}
}
