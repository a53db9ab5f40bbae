package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/internal/space"
)

const (
	maxRedirects  = 3
	maxErrorBody  = 4 << 10
	maxHost       = 253
	advertisement = "application/x-git-upload-pack-advertisement"
	service       = "/info/refs?service=git-upload-pack"
	agent         = "git/2.39 satchel" // some servers only answer clients that call themselves git
)

// List returns the refs of a remote. For http(s) it sends one request, and another for each
// redirect on the same host. Refs.URL is then the target. After a redirect to another host, the
// error has the problem Moved. Every error is an *Error or ctx's cause.
func (c *Client) List(ctx context.Context, e Endpoint) (Refs, error) {
	p, err := c.policy(e).check(e.URL)
	if err != nil {
		return Refs{}, &Error{Problem: BadURL, Op: "list", Host: "the remote", Err: err}
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.o.ListTimeout)
	defer cancel()
	var refs Refs
	if p.protocol == "http" || p.protocol == "https" {
		refs, err = c.listHTTP(ctx, e, p)
	} else {
		refs, err = c.listGit(ctx, e, p)
	}
	if err != nil {
		return Refs{}, c.finish(outer, call{e: e, p: p, op: "list"}, err)
	}
	return refs, nil
}

// call describes the call that an error belongs to.
type call struct {
	e                  Endpoint
	p                  place
	op, branch, gitDir string
}

// finish returns the error for callers. ctx is the context of the caller. If it has
// ended, finish returns its cause.
func (c *Client) finish(ctx context.Context, k call, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", k.op, context.Cause(ctx))
	}
	scrub := c.scrubber(k.e, k.p, k.gitDir)
	var out *Error
	if !errors.As(err, &out) {
		out = classifyGo(err, scrub)
	}
	out.Op, out.Host, out.Branch = k.op, k.p.host, k.branch
	out.Target = commits.Cut(cleanLine(scrub.text(out.Target)), maxHost)
	for i := range out.Said {
		out.Said[i] = scrub.text(out.Said[i])
	}
	for i := range out.Paths {
		out.Paths[i].Path, out.Paths[i].Rule = scrub.text(out.Paths[i].Path), scrub.text(out.Paths[i].Rule)
	}
	if out.Err != nil {
		out.Err = scrub.error(out.Err)
	}
	c.o.Logger.DebugContext(ctx, "A call to a git remote failed.", "op", out.Op, "host", out.Host, "problem", string(out.Problem), "error", out.Err)
	return out
}

func (c *Client) listHTTP(ctx context.Context, e Endpoint, p place) (Refs, error) {
	h, err := c.httpClient(e)
	if err != nil {
		return Refs{}, err
	}
	base := strings.TrimRight(p.url, "/")
	for range maxRedirects + 1 {
		refs, to, err := c.ask(ctx, h, e, base)
		if err != nil || to == "" {
			refs.URL = base
			return refs, err
		}
		next, err := url.Parse(to)
		if err != nil {
			return Refs{}, &Error{Problem: Malformed, Err: errors.New("a redirect to a malformed URL")}
		}
		if got := strings.ToLower(next.Scheme + "://" + next.Host); got != p.base {
			return Refs{}, &Error{Problem: Moved, Target: next.Hostname()}
		}
		again, ok := strings.CutSuffix(to, service)
		if !ok {
			return Refs{}, &Error{Problem: Moved, Target: p.host, Err: errors.New("a redirect to something that is no repository")}
		}
		if _, err := c.policy(e).check(again); err != nil {
			return Refs{}, &Error{Problem: Moved, Target: p.host, Err: err}
		}
		base = strings.TrimRight(again, "/")
	}
	return Refs{}, &Error{Problem: Moved, Target: p.host, Err: errors.New("too many redirects")}
}

// ask sends one request for the refs. to is the target of a redirect, or empty.
func (c *Client) ask(ctx context.Context, h *http.Client, e Endpoint, base string) (refs Refs, to string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+service, nil)
	if err != nil {
		return Refs{}, "", &Error{Problem: BadURL, Err: errors.New("no request can be made of the URL")}
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", advertisement)
	req.Header.Set("Cache-Control", "no-cache")
	if a := e.authorization(); a != "" {
		req.Header.Set("Authorization", a)
	}
	resp, err := h.Do(req)
	if err != nil {
		return Refs{}, "", err
	}
	defer resp.Body.Close()
	body := http.MaxBytesReader(nil, resp.Body, c.o.MaxAdvertised)
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		at, err := resp.Location()
		if err != nil {
			return Refs{}, "", &Error{Problem: Malformed, Status: resp.StatusCode, Err: errors.New("a redirect to nowhere")}
		}
		return Refs{}, at.String(), nil
	case resp.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		return Refs{}, "", classifyHTTP(resp, string(text), time.Now(), c.scrubber(e, place{}, ""))
	case resp.Header.Get("Content-Type") != advertisement:
		return Refs{}, "", &Error{Problem: Malformed, Status: resp.StatusCode, Err: errNoGit}
	}
	refs, err = parseAdvertised(body)
	return refs, "", err
}

// authorization returns the value of the Authorization header, or "" if there is no credential.
func (e Endpoint) authorization() string {
	if e.Credential.Secret == "" {
		return ""
	}
	user := cmp.Or(e.Credential.Username, defaultUser)
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+e.Credential.Secret))
}

// httpClient returns the client for an endpoint. Endpoints with the same rules share a
// client, to reuse connections.
func (c *Client) httpClient(e Endpoint) (*http.Client, error) {
	key := clientKey{trusted: e.Trusted, caFile: e.CAFile}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.clients[key]; h != nil {
		return h, nil
	}
	config, err := tlsConfig(e.CAFile)
	if err != nil {
		return nil, err
	}
	var t *http.Transport
	switch {
	case !e.Trusted && c.o.Egress == nil:
		return nil, &Error{Problem: BlockedAddress, Err: errors.New("no egress is configured")}
	case !e.Trusted:
		t = c.o.Egress.Transport(config)
	default:
		t = &http.Transport{
			DialContext:       (&net.Dialer{Timeout: c.o.ListTimeout}).DialContext,
			TLSClientConfig:   config,
			ForceAttemptHTTP2: true,
			IdleConnTimeout:   time.Minute,
		}
	}
	t.MaxResponseHeaderBytes = 64 << 10
	h := &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.clients[key] = h
	return h, nil
}

func tlsConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, &Error{Problem: TLS, Err: fmt.Errorf("the file of certificate authorities: %w", errors.Unwrap(err))}
	}
	if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, &Error{Problem: TLS, Err: errors.New("the file of certificate authorities holds none")}
	}
	return config, nil
}

// listGit lists the refs with git, for protocols other than http.
func (c *Client) listGit(ctx context.Context, e Endpoint, p place) (Refs, error) {
	env, err := c.environment(ctx, e, p)
	if err != nil {
		return Refs{}, err
	}
	out, err := c.git(c.o.ListTimeout).Run(ctx, gitcmd.Cmd{
		Dir: neutralDir(), Protocols: p.protocol, Env: env, Config: c.config(),
		Args: []string{"ls-remote", "--symref", "--end-of-options", p.url, "HEAD", headsPrefix + "*"},
	})
	if err != nil {
		return Refs{}, classifyGit(err, c.scrubber(e, p, ""))
	}
	refs, err := parseListed(out)
	if err != nil {
		return Refs{}, classifyGo(err, c.scrubber(e, p, ""))
	}
	refs.URL = e.URL
	if p.protocol == "file" {
		refs.Shallow = isShallow(p.url)
	}
	return refs, nil
}

// parseListed reads what ls-remote --symref prints.
func parseListed(out []byte) (Refs, error) {
	refs := Refs{Heads: map[string]space.CommitID{}, Empty: true}
	head := space.CommitID("")
	in := bufio.NewScanner(bytes.NewReader(out))
	for in.Scan() {
		first, name, _ := strings.Cut(in.Text(), "\t")
		if target, ok := strings.CutPrefix(first, "ref: "+headsPrefix); ok && name == "HEAD" && CheckBranch(target) == nil {
			refs.Default = target
			continue
		}
		commit := space.CommitID(first)
		switch {
		case !commit.Valid():
		case name == "HEAD":
			head = commit
		default:
			refs.add(name, commit)
		}
	}
	if err := refs.settleDefault(head); err != nil {
		return Refs{}, err
	}
	return refs, nil
}

// isShallow reports whether a directory is a shallow clone.
func isShallow(dir string) bool {
	for _, name := range []string{"shallow", filepath.Join(".git", "shallow")} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Size() > 0 {
			return true
		}
	}
	return false
}

// outOfRequests reports whether GitHub's limit of requests is used up.
func outOfRequests(h http.Header) bool { return h.Get("X-RateLimit-Remaining") == "0" }

// retryAfter returns how long a server asks us to wait, but at most 24 hours. It reads both forms
// of Retry-After, and GitHub's X-RateLimit-Reset.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	clamp := func(d time.Duration) time.Duration { return max(0, min(d, longest)) }
	if v := h.Get("Retry-After"); v != "" {
		if n, err := strconv.ParseInt(v, 10, 32); err == nil {
			return clamp(time.Duration(n) * time.Second)
		}
		if t, err := http.ParseTime(v); err == nil {
			return clamp(t.Sub(now))
		}
	}
	if outOfRequests(h) {
		if n, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return clamp(time.Unix(n, 0).Sub(now))
		}
	}
	return 0
}
