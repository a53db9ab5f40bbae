package app

import (
	"net/http"

	"satchel/web"
)

// addGitHub gives the pages the GitHub App, and remotes its tokens.
func (s *Server) addGitHub(_ *web.Options) error { return nil }

// routeWebhook adds where GitHub tells what happened.
func (s *Server) routeWebhook(_ *http.ServeMux) {}
