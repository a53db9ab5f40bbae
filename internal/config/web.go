package config

import "time"

// Web is the section web: what the pages do by themselves.
type Web struct {
	MaxStreams int // of live updates, of one person

	MaxDownloads, MaxAllDownloads int           // at once, of one person and of all
	DownloadStall                 time.Duration // of one write
	DownloadRate                  int64         // bytes per second, at least

	MaxText   int64 // bytes of a text that is edited in a page
	MaxFiles  int   // that one act on a page uploads, moves or deletes
	MaxSpaces int   // of a person's own
	FlowRate  int   // per hour
	// WaitingTime bounds the look for what waits in all spaces of a page.
	WaitingTime time.Duration
}

// API is the section api.
type API struct {
	Rate, Burst, Concurrent            int
	MaxBody                            int64
	MaxPaths, MaxCommands, MaxSessions int
	CommandTime, SessionIdle           time.Duration
}

// GitHub is the section github: the GitHub App by which people connect
// repositories. Which GitHub it is says auth.github.url.
type GitHub struct {
	RecheckEvery, Timeout             time.Duration
	MaxInstallations, MaxRepositories int   // that are read of one person's
	MaxWebhook                        int64 // bytes
	MaxWebhooks                       int   // at once
	MaxWebhookBytes                   int64 // of them together
	WebhookTimeout                    time.Duration
	KeepApprovals                     time.Duration
}

// Library is the section library: what people publish of their spaces.
type Library struct {
	MaxSources int   // of one person
	MaxFiles   int   // of one source
	MaxSize    int64 // of one source, in bytes
}

func webKeys() []key {
	return []key{
		row("web.max_streams", "Pages of one person that are told at once what changes; others show it when they are loaded again.", integer, 16,
			func(c *Config) *int { return &c.Web.MaxStreams }, numbers(0, 10_000)),
		row("web.max_downloads", "Bundles and archives that one person may download at once, and a quarter of how many files as they are.", integer, 4,
			func(c *Config) *int { return &c.Web.MaxDownloads }, numbers(1, 10_000)),
		row("web.max_all_downloads", "Downloads of all people at once.", integer, 64,
			func(c *Config) *int { return &c.Web.MaxAllDownloads }, numbers(1, 100_000)),
		row("web.download_stall", "How long who downloads something may take nothing of it.", duration, 30*time.Second,
			func(c *Config) *time.Duration { return &c.Web.DownloadStall }, durations(time.Second, time.Hour)),
		row("web.download_rate", "How much of a download is to be taken each second, on average after the first minute.", size, 16*kib,
			func(c *Config) *int64 { return &c.Web.DownloadRate }, sizes(1, gib)),
		row("web.max_text", "Largest text that is edited in a page.", size, mib,
			func(c *Config) *int64 { return &c.Web.MaxText }, sizes(16*kib, 3*mib)),
		row("web.max_files", "Files that one act on a page uploads, moves or deletes.", integer, 1000,
			func(c *Config) *int { return &c.Web.MaxFiles }, numbers(1, 50_000)),
		row("web.flow_rate", "How often an hour one person who is signed in may begin something that is finished elsewhere, such as connecting a repository at GitHub; half as often at once.", integer, 240,
			func(c *Config) *int { return &c.Web.FlowRate }, numbers(2, 1_000_000)),
		row("web.waiting_time", "How long a page that tells of many spaces looks for what waits in them to be confirmed; what is not known by then, it leaves out.", duration, 50*time.Millisecond,
			func(c *Config) *time.Duration { return &c.Web.WaitingTime }, durations(time.Millisecond, 10*time.Second)),
		row("api.rate", "Requests to the REST API per minute of one user, in the long run.", integer, 600,
			func(c *Config) *int { return &c.API.Rate }, numbers(1, 1_000_000)),
		row("api.burst", "Requests to the REST API of one user at once.", integer, 100,
			func(c *Config) *int { return &c.API.Burst }, numbers(1, 1_000_000)),
		row("api.max_concurrent", "Requests to the REST API of one user that may be in progress.", integer, 16,
			func(c *Config) *int { return &c.API.Concurrent }, numbers(1, 100_000)),
		row("api.max_body", "Largest request to the REST API.", size, mib,
			func(c *Config) *int64 { return &c.API.MaxBody }, sizes(kib, gib)),
		row("api.max_paths", "Paths that one request of the REST API may read.", integer, 20,
			func(c *Config) *int { return &c.API.MaxPaths }, numbers(1, 1_000)),
		row("api.max_commands", "Commands that one request of the REST API may run.", integer, 10,
			func(c *Config) *int { return &c.API.MaxCommands }, numbers(1, 1_000)),
		row("api.command_time", "Longest time that a command of the REST API may run.", duration, 2*time.Minute,
			func(c *Config) *time.Duration { return &c.API.CommandTime }, durations(time.Second, day)),
		row("api.max_sessions", "Sandboxes that a sessionId of the REST API names, of one key or client; the one that was used longest ago gives way.", integer, 8,
			func(c *Config) *int { return &c.API.MaxSessions }, numbers(1, 1_000)),
		row("web.max_spaces", "Spaces of their own that a person may have to make another on the pages; commands make more.", integer, 50,
			func(c *Config) *int { return &c.Web.MaxSpaces }, numbers(1, 100_000)),
		row("api.session_idle", "How long a sandbox of the REST API that a sessionId names is kept without a call.", duration, 30*time.Minute,
			func(c *Config) *time.Duration { return &c.API.SessionIdle }, durations(time.Second, 7*day)),
		row("github.recheck_every", "How often it is asked whether the people who connected repositories at GitHub may still change them.", duration, 6*time.Hour,
			func(c *Config) *time.Duration { return &c.GitHub.RecheckEvery }, durations(time.Minute, 30*day)),
		row("github.timeout", "Longest time that GitHub's API may take to answer one request.", duration, 10*time.Second,
			func(c *Config) *time.Duration { return &c.GitHub.Timeout }, durations(time.Second, 5*time.Minute)),
		row("github.max_installations", "Accounts with the GitHub App that are looked through for repositories of one person.", integer, 100,
			func(c *Config) *int { return &c.GitHub.MaxInstallations }, numbers(1, 10_000)),
		row("github.max_repositories", "Repositories at GitHub that are looked at when a person chooses one.", integer, 1000,
			func(c *Config) *int { return &c.GitHub.MaxRepositories }, numbers(1, 100_000)),
		row("github.max_webhook", "Largest event of GitHub's.", size, mib,
			func(c *Config) *int64 { return &c.GitHub.MaxWebhook }, sizes(kib, 25*mib)),
		row("github.max_webhooks", "Events of GitHub's that are read at once, of which one address sends a quarter at most.", integer, 64,
			func(c *Config) *int { return &c.GitHub.MaxWebhooks }, numbers(4, 100_000)),
		row("github.max_webhook_bytes", "Size of all events of GitHub's together that are read at once, of which one address sends a quarter at most; a single one may be as large as any.", size, 16*mib,
			func(c *Config) *int64 { return &c.GitHub.MaxWebhookBytes }, sizes(kib, gib)),
		row("github.webhook_timeout", "How long an event of GitHub's may take to come, and wait to be read.", duration, 10*time.Second,
			func(c *Config) *time.Duration { return &c.GitHub.WebhookTimeout }, durations(100*time.Millisecond, 5*time.Minute)),
		row("github.keep_approvals", "How long a space's page says that its owner waits for somebody's approval at GitHub.", duration, 30*day,
			func(c *Config) *time.Duration { return &c.GitHub.KeepApprovals }, durations(time.Hour, 365*day)),
		row("library.max_sources", "Sources that one person may publish.", integer, 50,
			func(c *Config) *int { return &c.Library.MaxSources }, numbers(0, 10_000)),
		row("library.max_files", "Files of one published source.", integer, 50_000,
			func(c *Config) *int { return &c.Library.MaxFiles }, numbers(1, 10_000_000)),
		row("library.max_size", "Size of one published source.", size, 512*mib,
			func(c *Config) *int64 { return &c.Library.MaxSize }, sizes(1, 100*gib)),
	}
}
