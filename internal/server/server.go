package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"satchel/auth/store"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/usage"
	"satchel/mcp"
	"satchel/tools"
	"satchel/tools/index"
	"satchel/web"
	"satchel/web/api"
)

// Server is a running Satchel server.
type Server struct {
	*Core
	version string

	index    *index.Index
	follower *index.Follower
	shared   *index.Follower // follows the published sources
	upkeep   *upkeep
	// libraries is the store that sandboxes start from.
	libraries *libraries
	bash      *bash // nil if the configuration switches it off
	tools     *tools.Registry
	api       *api.Server
	mcp       *mcp.Server
	signals   *signals
	file      *sourcesFile
	snapshot  snapshotRepository
	live      *web.Live // streams of open pages, and downloads

	unwritable writeProbe

	listener net.Listener
	metrics  net.Listener // nil if not configured
	socket   *admin.Socket
	commands gate    // counts the running requests of the socket
	secure   *secure // nil if no domain is configured
	bodies   *bodies
	origins
	front

	// ctx is canceled when the server's background work must end.
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup
	ready atomic.Bool
}

// OpenServer opens everything and listens, but answers nothing yet.
func OpenServer(ctx context.Context, cfg *config.Config, version string, log *slog.Logger) (_ *Server, err error) {
	s := &Server{version: version, bodies: newBodies(cfg.Server.BodyTimeout), snapshot: snapshotRepository{changed: make(chan struct{}, 1)}}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	s.signals = newSignals(version, log)
	if s.Core, err = openCore(ctx, cfg, version, log, s.signals.remotes, s.sourceSynced); err != nil {
		return nil, err
	}
	s.signals.usage = usage.New(usage.Options{DB: s.DB, Logger: log.With("part", "usage")})
	if err = s.listen(ctx); err != nil {
		return nil, err
	}
	s.signals.watchRemotes(s.remotes)
	s.signals.watchSyncs(s.Core)
	s.file = newSourcesFile(cfg)
	if s.secure != nil {
		s.signals.watchCertificate(s.secure.manager)
	}
	if s.index, err = openIndex(cfg, log); err != nil {
		return nil, err
	}
	s.follower = s.index.Follow(s.Git)
	s.upkeep = newUpkeep(s.Git, log)
	s.events.follow(s.remotes, ofPeople{s.syncs, s.follower}, s.upkeep, s.sources)
	if err = s.followSources(ctx); err != nil {
		return nil, err
	}
	if s.libraries, err = newLibraries(s.Git, cfg.DataDir); err != nil {
		return nil, err
	}
	if s.bash, err = openBash(cfg, s.runtime, s.libraries, s.sources.Library, s.held, s.signals.sandbox, log); err != nil {
		return nil, err
	}
	if s.bash != nil {
		s.signals.watchPool(s.bash.pool)
	}
	s.Admin.Running.URL = s.localURL() + "/mcp"
	s.attach()
	if err = s.openTools(); err != nil {
		return nil, err
	}
	if err = s.openFront(); err != nil {
		return nil, err
	}
	if err = s.openMCP(); err != nil {
		return nil, err
	}
	return s, s.applyAllowList(ctx)
}

// sourceSynced is called after each sync of a source.
func (s *Server) sourceSynced(r space.SyncRun) {
	s.signals.synced(r)
	s.snapshot.sourceSynced()
}

// attach gives the service the parts that only a running server has.
func (s *Server) attach() {
	h := &health{s: s, started: time.Now(), now: time.Now}
	r := service.Running{
		PagesURL:    s.issuer,
		UserRemoved: s.userEnded, MemberChanged: s.memberChanged,
		Index:         s.index,
		GrantsRevoked: func() { s.recheck(s.ctx) },
		LinkMade:      func(ctx context.Context, link string) { s.pages.NotifyOfLink(ctx, link) },
		SpaceCreated:  func(id space.SpaceID) { s.upkeep.warm(id) },
		Background:    s.background,
		DeleteSpace:   s.deleteSpace,
		Health:        h.Report, Usage: h.Usage, ClientUsage: s.signals.usage.Days, Access: accessOf(s.Config),
	}
	if s.bash != nil {
		r.Pool = s.bash.pool
		r.StopSpace, r.DiscardPending = s.bash.pool.StopSpace, s.bash.pool.DropPending
	}
	s.Service.Attach(r)
}

// listen opens every address, so that an address in use is reported before anything else
// starts.
func (s *Server) listen(ctx context.Context) (err error) {
	var lc net.ListenConfig
	cfg := s.Config.Server
	if s.listener, err = lc.Listen(ctx, "tcp", cfg.Listen); err != nil {
		return fault.Wrap(err, fault.Unavailable, "Cannot listen on %s: %s. Choose another address with --listen.", cfg.Listen, cause(err))
	}
	if cfg.Metrics != "" {
		if s.metrics, err = lc.Listen(ctx, "tcp", cfg.Metrics); err != nil {
			return fault.Wrap(err, fault.Unavailable, "Cannot serve metrics on %s: %s.", cfg.Metrics, cause(err))
		}
	}
	if s.socket, err = admin.Listen(SocketPath(s.Config.DataDir)); err != nil {
		return err
	}
	s.origins = originsOf(cfg, s.listener.Addr())
	if cfg.Domain != "" {
		s.secure, err = listenSecure(ctx, cfg, s.Config.DataDir, s.Log)
	}
	return err
}

// cause returns the innermost error, which for a socket is the system's.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// localURL returns the URL for clients on this machine.
func (s *Server) localURL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Exposed reports whether other machines can reach the server although no setting says that
// they use TLS.
func (s *Server) Exposed() bool {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback() && s.Config.Server.PublicURL == "" && s.secure == nil
}

// Local reports whether only this machine can reach the server.
func (s *Server) Local() bool { return len(s.local) > 0 }

// PagesURL returns the URL of people's pages. The MCP endpoint is also below this URL.
func (s *Server) PagesURL() string { return s.issuer }

// URL returns the MCP endpoint for clients.
func (s *Server) URL() string { return s.base + "/mcp" }

// applyAllowList suspends people whose entry in the allow list was removed, and readmits
// those whose entry was added again.
func (s *Server) applyAllowList(ctx context.Context) error {
	suspended, restored, err := s.Accounts.SuspendUnlisted(ctx, store.Actor{Via: "configuration"}, allowList(s.Config.Auth).Has)
	if err != nil {
		return err
	}
	if len(suspended)+len(restored) > 0 {
		s.Log.Info("the allow list has changed", "suspended", len(suspended), "restored", len(restored))
	}
	return nil
}

// openTools creates the tools for MCP clients, and the REST API with its own tools.
func (s *Server) openTools() (err error) {
	o := tools.Options{
		Service:   s.Service,
		Workspace: workspace{s.Git, s.remotes},
		Library:   s.library(),
		Trouble:   s.remotes.Trouble,
		Prefix:    s.Config.Tools.Prefix,
		PublicURL: func() string { return s.base },
		Logger:    s.Log.With("part", "tools"),
	}
	if s.tools, err = tools.New(o); err != nil {
		return err
	}
	return s.openAPI(o)
}

func (s *Server) openMCP() (err error) {
	s.mcp, err = mcp.New(mcp.Options{
		Tools:          s.tools,
		Verifier:       s.verifier(),
		Name:           "satchel",
		Title:          "Satchel",
		Version:        s.version,
		AllowedHosts:   s.allowedHosts(),
		AllowedOrigins: s.Config.Server.AllowedOrigins,

		Origin:               s.originFor,
		ResourceMetadataURL:  s.resourceMetadataURL,
		ScopeNames:           s.scopeNames,
		LimitUnauthenticated: s.guess,

		Rate:      s.Config.Server.Rate,
		Burst:     max(1, int(4*s.Config.Server.Rate)),
		Observer:  s.signals.mcp,
		Logger:    s.Log.With("part", "mcp"),
		RequestID: s.signals.requestID,
	})
	if err != nil {
		return err
	}
	s.events.add(s.mcp)
	return nil
}

// Serve answers requests until ctx ends. Then it shuts down: it refuses new requests, gives
// running commands time to end, and commits their changes. It calls ready as soon as it answers
// requests.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	if err := s.recallLinks(ctx); err != nil {
		return err
	}
	failed := make(chan error, 5)
	routes := s.routes()
	public := s.bodies.server(s.signals, routes)
	servers := []*http.Server{public}
	serve := func(srv *http.Server, l net.Listener) {
		s.work.Go(func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
		})
	}
	s.work.Go(func() { s.upkeep.run(s.ctx) })
	s.work.Go(func() { s.watchRights(s.ctx) })
	s.work.Go(func() { s.watchGitHub(s.ctx) })
	s.work.Go(func() { s.followFile(s.ctx) })
	s.work.Go(func() { s.followSnapshot(s.ctx) })
	if s.bash != nil {
		// Reap before the first request, which may start a sandbox. Connections wait until
		// then.
		s.bash.reap(s.ctx, s.Log)
	}
	if err := s.takeUpDeletions(ctx); err != nil {
		s.Log.Error("take up the deletion of spaces", "err", err)
	}
	if err := s.endGivenRemotes(ctx); err != nil { // before anything is pushed
		s.Log.Error("end the remotes of transferred spaces", "err", err)
	}
	ids := s.catchUp()
	s.syncs.Start() // now the GitHub App is open, whose tokens private repositories need
	serve(public, s.listener)
	if s.secure != nil {
		for _, at := range s.secure.servers(s.bodies, s.signals, routes) {
			serve(at.Server, at.listener)
			servers = append(servers, at.Server)
		}
	}
	// The socket has no time limit for bodies, because an import may take long to send
	// files.
	commands := s.signals.server(s.commands.wrap(admin.Handler(s.Admin, s.Log.With("part", "admin"))))
	serve(commands, s.socket)
	servers = append(servers, commands)
	if s.metrics != nil {
		m := s.bodies.server(s.signals, s.named(s.signals.metrics.Handler()))
		serve(m, s.metrics)
		servers = append(servers, m)
	}
	s.ready.Store(true)
	ready()
	s.begin(ids)

	var err error
	select {
	case <-ctx.Done():
		s.Log.Info("shutting down: running commands are ended with their grace, and what they changed is committed")
	case err = <-failed:
	}
	s.ready.Store(false)
	return errors.Join(err, s.shutdown(servers, commands))
}

// catchUp makes the index follow the commits that an earlier process missed, and returns
// the spaces. It is called before the first search, so that the index knows that it may be
// behind.
func (s *Server) catchUp() []space.SpaceID {
	ids, err := s.Git.Spaces()
	if err != nil {
		s.Log.Error("list the spaces", "err", err)
	}
	ids = slices.DeleteFunc(ids, func(id space.SpaceID) bool { return !s.Git.Exists(id) || s.syncs.Owns(id) }) // without deleted spaces and those of syncs
	for _, id := range ids {
		s.follower.Refresh(id)
	}
	return ids
}

// begin completes the start: it pushes the commits that an earlier process did not push,
// and checks whether bash works.
func (s *Server) begin(ids []space.SpaceID) {
	if err := s.remotes.Start(s.ctx); err != nil {
		s.Log.Error("take up what was not pushed", "err", err)
	}
	if s.bash != nil {
		s.work.Go(func() { s.bash.check(s.ctx, s.Log) })
		// The start of the server deletes the checkouts. Create as many as can be in use at
		// once, before anyone waits for them.
		s.upkeep.warm(ids[:min(len(ids), s.Config.Sandbox.Max)]...)
	}
}

// shutdown ends everything in order. Commands end first, because their answers need the MCP
// endpoint.
func (s *Server) shutdown(servers []*http.Server, commands *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.Config.Server.ShutdownGrace+10*time.Second)
	defer cancel()
	s.stop()
	s.bodies.end()
	var errs []error
	var pending sync.WaitGroup
	for _, srv := range servers {
		// Shutdown closes the listeners at once, and returns when requests are answered.
		pending.Go(func() {
			if err := srv.Shutdown(ctx); err != nil {
				_ = srv.Close()
			}
		})
	}
	// An import is atomic, so its stream may be cut off.
	cut := time.AfterFunc(s.Config.Server.ShutdownGrace, func() { _ = commands.Close() })
	defer cut.Stop()
	if s.bash != nil {
		errs = append(errs, s.bash.close(ctx))
	}
	errs = append(errs, s.mcp.Close(ctx))
	pending.Wait()
	// An import that did not end in time is canceled by now. Wait until it has released the
	// store.
	s.commands.wait()
	return errors.Join(append(errs, s.close(ctx))...)
}

// Close closes a server on which Serve was not called. Serve closes the server itself.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(s.mcp.Close(ctx), s.close(ctx))
}

func (s *Server) close(ctx context.Context) error {
	s.stop()
	for _, l := range []net.Listener{s.listener, s.metrics} {
		if l != nil {
			_ = l.Close() // serving has already closed it
		}
	}
	s.front.close()
	errs := []error{s.secure.close()}
	if s.socket != nil {
		_ = s.socket.Close()
	}
	s.work.Wait()
	if s.bash != nil {
		errs = append(errs, s.bash.close(ctx))
	}
	if s.Core != nil {
		errs = append(errs, s.closeRemotes())
		if s.syncs != nil {
			errs = append(errs, s.syncs.Close())
		}
	}
	if s.follower != nil {
		s.events.follow()
		s.follower.Close()
	}
	if s.shared != nil {
		s.sources.Close()
		s.shared.Close()
	}
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.Core != nil {
		errs = append(errs, s.signals.usage.Close(context.WithoutCancel(ctx)), s.Core.Close())
	}
	return errors.Join(errs...)
}
