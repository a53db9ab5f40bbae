package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/auth"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/bytesize"
	"satchel/internal/config"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// health checks a running server. It caches the results of slow checks.
type health struct {
	s       *Server
	started time.Time
	now     func() time.Time

	mu      sync.Mutex
	bash    kept[error]
	sizes   kept[map[space.SpaceID]int64]
	behind  kept[indexState]
	commits map[space.SpaceID]counted
	looking sync.Mutex // held while a check may start a sandbox
}

// kept is a cached result and its time.
type kept[T any] struct {
	at    time.Time
	value T
}

// How long results are cached.
const (
	keepBash  = 5 * time.Minute
	keepSizes = time.Minute
	keepIndex = 10 * time.Second
)

// accessOf returns the configuration's rules of access.
func accessOf(cfg *config.Config) service.Access {
	a := cfg.Auth
	acc := service.Access{Issuer: a.Issuer.URL, Registration: a.Registration, Documents: a.ClientDocuments, File: cfg.File}
	if a.Mail.URL != "" {
		acc.MailFrom = a.Mail.From
	}
	return acc
}

// Report runs all checks, and counts people, spaces and the like.
func (h *health) Report(ctx context.Context) (service.Health, error) {
	r := service.Health{Started: h.started}
	for _, look := range []func(context.Context) service.HealthCheck{
		h.database, h.sandboxes, h.search, h.sources, h.remotes, h.certificate, h.disk, h.git, h.github,
	} {
		r.Checks = append(r.Checks, look(ctx))
	}
	st, err := h.s.Accounts.Stats(ctx)
	if err != nil {
		return r, err
	}
	for _, n := range h.stored(ctx) {
		r.Stored += n
	}
	up := 0
	if h.s.bash != nil {
		up = h.s.bash.pool.Status().Sandboxes
	}
	r.Totals = []service.HealthTotal{
		{Name: "People", Value: fmt.Sprint(st.Users)}, {Name: "Admins", Value: fmt.Sprint(st.Admins)},
		{Name: "Spaces", Value: fmt.Sprint(st.Spaces)}, {Name: "Sources", Value: fmt.Sprint(len(h.s.sources.All()))},
		{Name: "Keys", Value: fmt.Sprint(st.Keys)}, {Name: "Sandboxes", Value: fmt.Sprint(up)},
	}
	return r, nil
}

func good(name, detail string, args ...any) service.HealthCheck {
	return service.HealthCheck{Name: name, State: service.HealthGood, Detail: fmt.Sprintf(detail, args...)}
}

func (h *health) database(ctx context.Context) service.HealthCheck {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := time.Now()
	if err := h.s.DB.Ping(ctx); err != nil {
		return service.HealthCheck{Name: "Database", State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "Start the database, or correct its address (`database.url`) in `satchel.yaml` and restart the server. The log of the server says more."}
	}
	return good("Database", "%s answers in %.1f ms.", databaseName(h.s.DB.Kind()), max(0.1, time.Since(began).Seconds()*1000))
}

// sandboxes reports whether bash can run, and how full the pool is.
func (h *health) sandboxes(ctx context.Context) service.HealthCheck {
	const name = "Sandboxes"
	if h.s.bash == nil {
		return service.HealthCheck{Name: name, State: service.HealthOff, Detail: "Clients cannot run commands on this server.", Remedy: "Search and all else work without sandboxes. To switch them on, change `sandbox.runtime` in `satchel.yaml` and restart the server."}
	}
	if err := h.bashWorks(ctx); err != nil {
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "Clients cannot run commands until this is solved; all else works. Run `satchel doctor` on the server’s machine, which says how to solve the problem."}
	}
	p, of := h.s.bash.pool.Status(), h.s.Config.Sandbox.Max
	c := good(name, "Running: %d of at most %d. Busy: %d. Memory in use: %s.", p.Sandboxes, of, p.Busy, bytesize.Text(p.Memory))
	switch {
	case p.Queued > 0:
		c.State, c.Remedy = service.HealthNote, fmt.Sprintf("%d commands wait for a free sandbox. If the machine has more memory, raise `sandbox.max` or `sandbox.total_memory` in `satchel.yaml`.", p.Queued)
	case p.OutOfMemory > 0:
		c.Detail += fmt.Sprintf(" Since the start, %d ran out of memory.", p.OutOfMemory)
	}
	return c
}

// bashWorks returns an error if no sandbox can run. If none is up, it asks the runtime at most
// once in keepBash, and this may start a sandbox.
func (h *health) bashWorks(ctx context.Context) error {
	if h.s.bash.pool.Status().Sandboxes > 0 {
		return nil
	}
	h.looking.Lock()
	defer h.looking.Unlock()
	h.mu.Lock()
	last := h.bash
	h.mu.Unlock()
	if !last.at.IsZero() && h.now().Sub(last.at) < keepBash {
		return last.value
	}
	err := h.s.bash.pool.Check(ctx)
	if ctx.Err() != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bash = kept[error]{h.now(), err}
	return err
}

// indexState counts the checked indexes, those that are behind, and those that cannot be updated.
type indexState struct{ spaces, behind, failed int }

// maxIndexes is the maximum number of indexes that one check opens.
const maxIndexes = 200

// behindNote is how long an index may be behind before it needs attention.
const behindNote = time.Minute

func (h *health) search(ctx context.Context) service.HealthCheck {
	h.mu.Lock()
	last := h.behind
	h.mu.Unlock()
	st := last.value
	if last.at.IsZero() || h.now().Sub(last.at) > keepIndex {
		ids, err := h.s.Git.Spaces()
		if err != nil {
			return service.HealthCheck{Name: "Search", State: service.HealthBad, Detail: "The server cannot list the spaces.", Remedy: "Run `satchel doctor` on the server’s machine. The log of the server says more."}
		}
		// The index follows the sources of syncs, and not their spaces.
		ids = slices.DeleteFunc(ids, h.s.syncs.Owns)
		ids = ids[:min(len(ids), maxIndexes)]
		st = indexState{spaces: len(ids)}
		for _, id := range ids {
			x, err := h.s.index.Status(ctx, id)
			switch {
			case ctx.Err() != nil:
				return service.HealthCheck{Name: "Search", State: service.HealthNote, Detail: "The check of the search indexes took too long.", Remedy: "Check again when the server is less busy."}
			case err != nil || x.Err != nil:
				st.failed++
			case x.Behind > behindNote:
				st.behind++
			}
		}
		h.mu.Lock()
		h.behind = kept[indexState]{h.now(), st}
		h.mu.Unlock()
	}
	switch {
	case st.failed > 0:
		return service.HealthCheck{Name: "Search", State: service.HealthBad, Detail: fmt.Sprintf("The search index of %s cannot be updated.", spacesText(st.failed)), Remedy: "Run `satchel reindex` on the server’s machine, which makes the index anew. The log of the server says why the update failed."}
	case st.behind > 0:
		return service.HealthCheck{Name: "Search", State: service.HealthNote, Detail: fmt.Sprintf("The search index of %s is over a minute behind.", spacesText(st.behind)), Remedy: "Wait if somebody imports many files. If the index stays behind, run `satchel reindex` on the server’s machine."}
	}
	return good("Search", "The search index of %s is up to date.", spacesText(st.spaces))
}

// dayOf formats a day as the pages do.
func dayOf(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

func databaseName(k database.Kind) string {
	if k == database.Postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

func spacesText(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

func (h *health) remotes(context.Context) service.HealthCheck {
	st := h.s.Core.remotes.Stats()
	if st.Remotes == 0 {
		return service.HealthCheck{Name: "Git remotes", State: service.HealthOff, Detail: "No space has a Git remote, so all spaces are only on this machine.", Remedy: "Back up the data directory, or set a remote in the settings of each space."}
	}
	c := good("Git remotes", "Spaces with a remote: %d.", st.Remotes)
	if n := st.Queued + st.Running; n > 0 {
		c.Detail += fmt.Sprintf(" Being pushed or waiting now: %d.", n)
	}
	var failing []string
	for _, p := range slices.Sorted(maps.Keys(st.Failed)) {
		if n := st.Failed[p]; n > 0 {
			failing = append(failing, fmt.Sprintf("%d (%s)", n, failureText(p)))
		}
	}
	if len(failing) > 0 {
		c.State = service.HealthBad
		c.Detail += " Failing pushes: " + strings.Join(failing, ", ") + "."
		c.Remedy = "To see which spaces fail, run `satchel space status` on the server’s machine. Their owners see what to do in the settings of the space, on the tab Git remote. The server tries again automatically."
	}
	if st.OldestUnpushed > time.Hour {
		c.Detail += fmt.Sprintf(" The oldest change that is not pushed is %s old.", st.OldestUnpushed.Round(time.Minute))
		if c.State == service.HealthGood {
			c.State = service.HealthNote
			c.Remedy = "Run `satchel space status` on the server’s machine, which lists the spaces that wait."
		}
	}
	return c
}

// certificateNote is the remaining lifetime at which a certificate needs attention. Renewal
// normally happens long before.
const certificateNote = 14 * 24 * time.Hour

func (h *health) certificate(context.Context) service.HealthCheck {
	const name = "Certificate"
	if h.s.secure == nil {
		c := service.HealthCheck{Name: name, State: service.HealthOff, Detail: "This server has no certificate of its own."}
		switch {
		case h.s.Exposed():
			c.State, c.Detail = service.HealthBad, "Other machines reach this server without encryption."
			c.Remedy = "In `satchel.yaml`, set `server.domain`, and the server gets a certificate for this domain. If a proxy in front has the certificate, set `server.public_url`."
		case strings.HasPrefix(h.s.issuer, "https://"):
			c.Detail = "A proxy in front of this server has the certificate."
		default:
			c.Detail += " It answers only on this machine, where none is needed."
		}
		return c
	}
	st := h.s.secure.manager.Status()
	switch left := st.NotAfter.Sub(h.now()); {
	case st.NotAfter.IsZero():
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: strings.TrimSpace(fmt.Sprintf("There is no certificate for %s yet. %s", st.Domain, st.LastError)), Remedy: "Let the domain point to this machine, and open port 443 or 80. The server tries again automatically."}
	case left < certificateNote:
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: strings.TrimSpace(fmt.Sprintf("The certificate for %s expires on %s. %s", st.Domain, dayOf(st.NotAfter), st.LastError)), Remedy: "Check that the domain points to this machine and that port 443 or 80 is open. The server asks for a new certificate automatically."}
	}
	return good(name, "The certificate for %s is valid until %s.", st.Domain, dayOf(st.NotAfter))
}

// leastFree is the free space below which an admin should act. Commits fail when the disk
// is full.
const leastFree = 2 << 30

func (h *health) disk(context.Context) service.HealthCheck {
	free, err := freeBytes(h.s.Config.DataDir)
	if err != nil {
		return service.HealthCheck{Name: "Disk", State: service.HealthNote, Detail: "The server cannot find out how much space is free.", Remedy: "Check the free space of the data directory yourself."}
	}
	c := good("Disk", "%s free in the data directory.", bytesize.Text(int64(min(free, 1<<62))))
	if free < leastFree {
		c.State, c.Remedy = service.HealthBad, "Delete files on this disk, or move the data directory to a larger one. When the disk is full, nothing can be saved."
	}
	return c
}

func (h *health) git(context.Context) service.HealthCheck {
	if _, err := exec.LookPath("git"); err != nil {
		return service.HealthCheck{Name: "Git", State: service.HealthBad, Detail: "The program git is not installed.", Remedy: "Install git on the server’s machine, for example with `apt-get install git`. Imports and Git remotes need the program."}
	}
	return good("Git", "The program git is installed.")
}

func (h *health) github(ctx context.Context) service.HealthCheck {
	const name = "GitHub App"
	a, ok, err := h.s.Accounts.GitHubApp(ctx)
	switch {
	case err != nil:
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "Try again in a minute. The log of the server says more."}
	case !ok:
		return service.HealthCheck{Name: name, State: service.HealthOff, Detail: "Not set up. People can still push to GitHub with a token.", Remedy: "To let people choose a repository with a few clicks, set up the App on the tab GitHub."}
	}
	links, err := h.s.Accounts.RepositoryLinks(ctx)
	if err != nil {
		return service.HealthCheck{Name: name, State: service.HealthBad, Detail: fault.PublicOf(err), Remedy: "Try again in a minute. The log of the server says more."}
	}
	c := good(name, "The App %s is set up.", a.Name)
	for _, state := range []auth.LinkState{auth.LinkSuspended, auth.LinkRemoved, auth.LinkLost} {
		n := 0
		for _, l := range links {
			if l.State == state {
				n++
			}
		}
		if n == 0 {
			continue
		}
		// Do not reveal to an admin whose connections they are.
		what, way := auth.RepositoryLink{State: state}.Trouble(auth.AtGitHubTab)
		c.State = service.HealthNote
		c.Detail += fmt.Sprintf(" %s: %s", spacesText(n), what)
		c.Remedy = strings.TrimSpace(c.Remedy + " " + way)
	}
	return c
}

// failureText describes a problem of remotes.
func failureText(p remotes.Problem) string {
	switch p {
	case remotes.NoAccess:
		return "the GitHub App has no access, see below"
	case remotes.NoToken:
		return "the token cannot be read"
	case remotes.Missing:
		return "the space is not on this disk"
	case remotes.Internal, transport.Unknown:
		return "see the log of the server"
	}
	return strings.ReplaceAll(string(p), "_", " ")
}

// stored returns the size of each space's packs on disk, in bytes.
func (h *health) stored(ctx context.Context) map[space.SpaceID]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.sizes.at.IsZero() && h.now().Sub(h.sizes.at) < keepSizes {
		return h.sizes.value
	}
	sizes := map[space.SpaceID]int64{}
	ids, err := h.s.Git.Spaces()
	if err != nil {
		return sizes
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return sizes
		}
		packs, _ := os.ReadDir(filepath.Join(h.s.Config.DataDir, "spaces", string(id)+".git", "objects", "pack")) // an unreadable directory counts as 0 bytes
		for _, p := range packs {
			if info, err := p.Info(); err == nil {
				sizes[id] += info.Size()
			}
		}
	}
	h.sizes = kept[map[space.SpaceID]int64]{h.now(), sizes}
	return sizes
}

// counted is the number of a space's recent commits at a head.
type counted struct {
	kept[int]
	head space.CommitID
}

// Limits of the counted history.
const (
	commitDays = 30
	maxCounted = 1000
)

// committed counts a space's recent commits. It counts again after a new commit, or after
// some hours.
func (h *health) committed(ctx context.Context, id space.SpaceID) int {
	head, err := h.s.Git.Head(ctx, id)
	if err != nil {
		return 0
	}
	h.mu.Lock()
	c, ok := h.commits[id]
	h.mu.Unlock()
	if ok && c.head == head && h.now().Sub(c.at) < 6*time.Hour {
		return c.value
	}
	list, err := h.s.Git.Log(ctx, id, space.LogQuery{Since: h.now().AddDate(0, 0, -commitDays), Limit: maxCounted})
	if err != nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.commits == nil || len(h.commits) > 10_000 {
		h.commits = map[space.SpaceID]counted{}
	}
	h.commits[id] = counted{kept[int]{h.now(), len(list)}, head}
	return len(list)
}

// Usage reports what people use.
func (h *health) Usage(ctx context.Context, people []space.UserID) ([]service.Usage, error) {
	all, err := h.s.Accounts.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	owned := map[space.UserID][]space.SpaceID{}
	for _, sp := range all {
		owned[sp.Owner] = append(owned[sp.Owner], sp.ID)
	}
	sizes := h.stored(ctx)
	var up map[space.UserID]int
	if h.s.bash != nil {
		up = h.s.bash.pool.ByUser()
	}
	out := make([]service.Usage, 0, len(people))
	for _, p := range people {
		u := service.Usage{User: p, Spaces: len(owned[p]), Sandboxes: up[p]}
		for _, id := range owned[p] {
			u.Bytes += sizes[id]
			n := h.committed(ctx, id)
			u.Commits += n
			u.More = u.More || n == maxCounted
		}
		grants, err := h.s.Accounts.Grants(ctx, p)
		if err != nil {
			return nil, err
		}
		u.Grants = len(grants)
		for _, g := range grants {
			u.Seen = later(u.Seen, g.LastUsed)
		}
		sessions, err := h.s.Accounts.Sessions(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, ss := range sessions {
			u.Seen = later(u.Seen, ss.Seen)
		}
		out = append(out, u)
	}
	return out, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
