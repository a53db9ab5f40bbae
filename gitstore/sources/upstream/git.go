package upstream

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// git is a repository of any git server.
type git struct {
	URL string `json:"url"`
	gitFiles
}

func gitKind() Kind {
	return Kind{
		Name: "git", Title: "Git repository", New: func() Upstream { return &git{} },
		Recognize: func(u *url.URL) Upstream {
			if strings.HasSuffix(u.Path, ".git") {
				return &git{URL: u.String()}
			}
			return nil
		},
	}
}

func (g *git) Validate() error {
	g.URL = strings.TrimSpace(g.URL)
	if g.URL == "" {
		return fault.New(fault.Invalid, "A git source needs the URL of a repository.").In("url")
	}
	return g.validate()
}

func (g *git) endpoint(env *Env) transport.Endpoint {
	return transport.Endpoint{URL: g.URL, Trusted: env.Trusted != nil && env.Trusted(g.URL)}
}

func (g *git) Check(ctx context.Context, env *Env) (State, error) {
	return tip(ctx, env, g.endpoint(env), g.Branch)
}

func (g *git) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	return g.fetch(ctx, env, g.endpoint(env), g.permalink, sink)
}

// permalink returns the address of a file. Git servers have no common form of such addresses,
// so the address consists of the repository, the branch and the path.
func (g *git) permalink(p string) string {
	u := strings.TrimSuffix(g.URL, ".git") + "#" + p
	if g.Branch != "" {
		u = strings.TrimSuffix(g.URL, ".git") + "#" + g.Branch + ":" + p
	}
	return u
}

// tip returns the commit of a remote's branch. An empty branch means the default branch.
func tip(ctx context.Context, env *Env, e transport.Endpoint, branch string) (State, error) {
	refs, err := env.Remotes.List(ctx, e)
	if err != nil {
		return "", gitFault(err)
	}
	if refs.Empty {
		return "", fault.New(fault.NotFound, "The repository is empty. Push to it first. The next update fetches the files.")
	}
	if branch == "" {
		branch = refs.Default
	}
	if branch == "" {
		return "", fault.New(fault.NotFound, "The repository does not say which branch is its default. Name a branch in the settings.").In("branch")
	}
	commit, ok := refs.Heads[branch]
	if !ok {
		return "", fault.New(fault.NotFound, "The repository has no branch %q. Name another branch in the settings.", branch).In("branch")
	}
	return State(commit), nil
}

// gitFault converts an error of a remote to a fault. The fault's code decides whether the sync
// tries again.
func gitFault(err error) error {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return err
	}
	to := func(code fault.Code, text string) error {
		f := fault.Wrap(err, code, "%s", text)
		f.RetryAfter = e.RetryAfter
		return f
	}
	switch e.Problem {
	case transport.Auth, transport.Forbidden:
		return to(fault.Forbidden, "The repository refuses access. Check that it exists, and that Satchel may read it.")
	case transport.Gone:
		return to(fault.NotFound, "There is no such repository, or Satchel may not read it. Correct the settings, or remove the source.")
	case transport.Moved:
		return to(fault.NotFound, "The repository has moved to "+cleanHost(e.Target)+". Correct the settings.")
	case transport.NoBranch:
		return to(fault.NotFound, "The repository has no branch of this name. Name another branch in the settings.")
	case transport.OverLimit, transport.TooLarge:
		return to(fault.TooLarge, "The repository is larger than a source may be. Name a smaller one, or only a directory of it (content_path).")
	case transport.RateLimited:
		return to(fault.Limited, "The git server asks Satchel to wait.")
	case transport.BlockedAddress, transport.BadURL:
		return to(fault.Invalid, "This URL cannot be used. Use an https URL of a public host.")
	case transport.Malformed:
		return to(fault.Damaged, "The address does not answer like a git repository, or the repository is damaged. Check the address.")
	case transport.DiskFull:
		return to(fault.Unavailable, "The disk of this server or of the git server is full.")
	case transport.TLS:
		return to(fault.Unavailable, "The git server's certificate is not accepted.")
	case transport.DNS:
		return to(fault.Unavailable, "The git server's name is unknown. Check the address.")
	case transport.Timeout:
		return to(fault.Unavailable, "The git server is too slow.")
	case transport.NoGit:
		return to(fault.Unavailable, "The git program is not installed on this server. Install it (version 2.39 or later).")
	}
	return to(fault.Unavailable, "The git server cannot be reached, or failed.")
}

func cleanHost(host string) string {
	if host == "" {
		return "another address"
	}
	return host
}

// under returns the path of the file p relative to dir, and false if p is not below dir.
func under(dir, p string) (string, bool) {
	if dir == "" {
		return p, true
	}
	return strings.CutPrefix(p, dir+"/")
}

// cleanDir checks a directory of a repository or of a source, and returns it without outer spaces
// and slashes. The error names the setting.
func cleanDir(dir, setting string) (string, error) {
	dir = strings.Trim(strings.TrimSpace(dir), "/")
	if dir == "" || dir == "." {
		return "", nil
	}
	if _, err := space.ParsePath(dir); err != nil {
		return "", fault.Wrap(err, fault.Invalid, "%s", fault.PublicOf(err)).In(setting)
	}
	return dir, nil
}
