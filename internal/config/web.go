package config

import "time"

// Web is the section web: what the pages do by themselves.
type Web struct {
	MaxStreams int // of live updates, of one person

	MaxText  int64 // bytes of a text that is edited in a page
	MaxFiles int   // that one act on a page uploads, moves or deletes
}

// API is the section api.
type API struct {
	SessionIdle time.Duration
}

// GitHub is the section github: the GitHub App by which people connect
// repositories. Which GitHub it is says auth.github.url.
type GitHub struct {
	RecheckEvery time.Duration
}

func webKeys() []key {
	return []key{
		row("web.max_streams", "Pages of one person that are told at once what changes; others show it when they are loaded again.", integer, 16,
			func(c *Config) *int { return &c.Web.MaxStreams }, numbers(0, 10_000)),
		row("web.max_text", "Largest text that is edited in a page.", size, mib,
			func(c *Config) *int64 { return &c.Web.MaxText }, sizes(16*kib, 3*mib)),
		row("web.max_files", "Files that one act on a page uploads, moves or deletes.", integer, 1000,
			func(c *Config) *int { return &c.Web.MaxFiles }, numbers(1, 50_000)),
		row("api.session_idle", "How long a sandbox of the REST API that a sessionId names is kept without a call.", duration, 30*time.Minute,
			func(c *Config) *time.Duration { return &c.API.SessionIdle }, durations(time.Second, 7*day)),
		row("github.recheck_every", "How often it is asked whether the people who connected repositories at GitHub may still change them.", duration, 6*time.Hour,
			func(c *Config) *time.Duration { return &c.GitHub.RecheckEvery }, durations(time.Minute, 30*day)),
	}
}
