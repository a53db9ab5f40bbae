package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"satchel/internal/acme"
	"satchel/internal/config"
	"satchel/internal/fault"
)

// secure serves the server's own domain: https with a certificate by ACME, and plain http
// for challenges and redirects. It is nil for a server without a domain.
type secure struct {
	manager      *acme.Manager
	https, plain net.Listener // plain is nil if it is not configured
}

// listenSecure opens the listeners. It sends no request to the certificate authority yet.
func listenSecure(ctx context.Context, cfg config.Server, dataDir string, log *slog.Logger) (_ *secure, err error) {
	s := &secure{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	var lc net.ListenConfig
	if s.https, err = lc.Listen(ctx, "tcp", cfg.HTTPSListen); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "Cannot serve https on %s: %s. Choose another address with --server-https-listen, to which port 443 is forwarded, or run as a user who may use it.", cfg.HTTPSListen, cause(err))
	}
	if cfg.HTTPListen != "" {
		if s.plain, err = lc.Listen(ctx, "tcp", cfg.HTTPListen); err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "Cannot answer on %s: %s. Choose another address with --server-http-listen, to which port 80 is forwarded, or none with --server-http-listen \"\".", cfg.HTTPListen, cause(err))
		}
	}
	s.manager, err = acme.New(acme.Options{
		Domain: cfg.Domain, Dir: filepath.Join(dataDir, "acme"), DirectoryURL: cfg.ACMEURL, Email: cfg.ACMEEmail, CAFile: cfg.ACMECAFile,
		Logger: log.With("part", "acme"),
	})
	return s, err
}

// listening is a server and its listener. It serves https if the server has a TLS
// configuration.
type listening struct {
	*http.Server
	listener net.Listener
}

// servers returns the servers of the listeners, and begins to renew the certificate.
func (s *secure) servers(b *bodies, g *signals, routes http.Handler) []listening {
	public := b.server(g, strictTransport(routes))
	public.TLSConfig = s.manager.TLSConfig()
	// Failed handshakes are logged only for debugging, because internet scanners cause many.
	public.ErrorLog = slog.NewLogLogger(g.log.With("part", "https").Handler(), slog.LevelDebug)
	out := []listening{{public, tls.NewListener(s.https, public.TLSConfig)}}
	if s.plain != nil {
		out = append(out, listening{b.server(g, s.manager.HTTPHandler()), s.plain})
	}
	s.manager.Start()
	return out
}

// strictTransport tells browsers to use only TLS from now on (RFC 6797).
func strictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

func (s *secure) close() error {
	if s == nil {
		return nil
	}
	for _, l := range []net.Listener{s.https, s.plain} {
		if l != nil {
			_ = l.Close() // serving has closed it already
		}
	}
	if s.manager != nil {
		s.manager.Close()
	}
	return nil
}
