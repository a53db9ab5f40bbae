package service

import (
	"context"
	"log/slog"

	"satchel/auth/store"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
)

// Options are the engines that a Service drives. All are required, besides Logger.
type Options struct {
	Accounts *store.Store
	Sources  *sources.Manager
	Secrets  *secretscan.Scanner
	Logger   *slog.Logger // nil discards
}

// Service performs operations. Its methods are safe for concurrent use.
type Service struct {
	accounts *store.Store
	sources  *sources.Manager
	secrets  *secretscan.Scanner
	log      *slog.Logger
	rights   map[string]Right // by the names of operations
}

// New returns a Service.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{accounts: o.Accounts, sources: o.Sources, secrets: o.Secrets, log: o.Logger, rights: map[string]Right{}}
	for _, op := range Operations() {
		s.rights[op.Name] = op.Right
	}
	return s
}

// record writes an audit line. The operation has succeeded by then, so that a failure
// is only logged.
func (s *Service) record(ctx context.Context, a Actor, action, subject string, detail map[string]any) {
	if err := s.accounts.Record(context.WithoutCancel(ctx), a.audit(), action, subject, detail); err != nil {
		s.log.Error("write the audit log", "action", action, "err", err)
	}
}
