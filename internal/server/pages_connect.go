package server

import (
	"context"
	"os"

	"satchel/internal/fault"
	"satchel/web"
)

// addConnect sets the options of the pages that connect clients and repositories or edit files.
func (s *Server) addConnect(o *web.Options) {
	if exe, err := os.Executable(); err == nil && s.Local() {
		o.Stdio = []string{exe, "stdio", "--data", s.Config.DataDir}
	}
	o.Editing = web.EditLimits{MaxFile: s.Config.Space.MaxFile, MaxChange: s.Config.Space.MaxChange()}
	o.PollEvery, o.Webhooks = s.Config.Remotes.PollEvery, reachable(s.issuer)
}

// background starts work that ends with the server.
func (s *Server) background(work func(ctx context.Context)) error {
	if err := s.ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The server is about to stop. Try again in a moment.")
	}
	s.work.Go(func() { work(s.ctx) })
	return nil
}
