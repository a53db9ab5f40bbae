package upstream

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"strings"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// gitHub is one or more repositories of a GitHub server. For repositories that Satchel's GitHub
// App can read, the App's token is used. Other repositories must be public.
type gitHub struct {
	// Host is the GitHub server. The default is github.com. The operator must allow other servers.
	Host string `json:"host,omitempty"`
	gitHubRepository
	// AdditionalSyncs are further directories or repositories of the same source.
	AdditionalSyncs []gitHubRepository `json:"additional_syncs,omitempty"`
}

// gitHubRepository is the part of a repository that a source takes.
type gitHubRepository struct {
	// Repo is the repository, as owner/name.
	Repo string `json:"repo"`
	gitFiles
}

const (
	gitHubHost         = "github.com"
	maxAdditionalSyncs = 20
)

var repoForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$`)

func gitHubKind() Kind {
	return Kind{
		Name: "github", Title: "GitHub repository", New: func() Upstream { return &gitHub{} },
		Recognize: recognizeGitHub,
	}
}

// recognizeGitHub reads addresses of the form github.com/OWNER/NAME[/tree/BRANCH[/DIRECTORY]].
// A branch with a slash cannot be told from a directory, so the part after tree is the branch.
func recognizeGitHub(u *url.URL) Upstream {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if u.Host != gitHubHost && u.Host != "www."+gitHubHost || len(parts) < 2 {
		return nil
	}
	g := &gitHub{gitHubRepository: gitHubRepository{Repo: parts[0] + "/" + strings.TrimSuffix(parts[1], ".git")}}
	if len(parts) >= 4 && parts[2] == "tree" {
		g.Branch, g.ContentPath = parts[3], strings.Join(parts[4:], "/")
	}
	return g
}

func (g *gitHub) Validate() error {
	g.Host = cmp.Or(strings.ToLower(strings.TrimSpace(g.Host)), gitHubHost)
	if strings.ContainsAny(g.Host, "/@? ") {
		return fault.New(fault.Invalid, "The host is a name such as github.example.com.").In("host")
	}
	if len(g.AdditionalSyncs) > maxAdditionalSyncs {
		return fault.New(fault.Invalid, "The setting additional_syncs can have at most %d entries. Add another source for more.", maxAdditionalSyncs).In("additional_syncs")
	}
	for r := range g.all() {
		if r.Repo = strings.Trim(strings.TrimSpace(r.Repo), "/"); !repoForm.MatchString(r.Repo) {
			return fault.New(fault.Invalid, "The repository is written owner/name, such as nuxt/nuxt.").In("repo")
		}
		if err := r.validate(); err != nil {
			return err
		}
	}
	return nil
}

// all yields the repository and those in AdditionalSyncs.
func (g *gitHub) all() func(yield func(*gitHubRepository) bool) {
	return func(yield func(*gitHubRepository) bool) {
		if !yield(&g.gitHubRepository) {
			return
		}
		for i := range g.AdditionalSyncs {
			if !yield(&g.AdditionalSyncs[i]) {
				return
			}
		}
	}
}

// origin returns the address of the GitHub server. configured reports whether the operator
// configured a server other than github.com. Such a server may be on another port, or in a private
// network.
func (g *gitHub) origin(env *Env) (origin string, configured bool) {
	if u, err := url.Parse(env.GitHub); err == nil && u.Host != "" && strings.EqualFold(u.Host, g.Host) {
		return u.Scheme + "://" + u.Host, g.Host != gitHubHost
	}
	return "https://" + g.Host, false
}

func (g *gitHub) endpoint(ctx context.Context, env *Env, r *gitHubRepository) (transport.Endpoint, error) {
	origin, configured := g.origin(env)
	e := transport.Endpoint{URL: origin + "/" + r.Repo + ".git"}
	// A company's own server may be in the company's network.
	e.Trusted = configured || g.Host != gitHubHost && env.Trusted != nil && env.Trusted(e.URL)
	if env.Token == nil {
		return e, nil
	}
	token, err := env.Token(ctx, g.Host, r.Repo)
	if err == nil && token != "" {
		e.Credential = space.Credential{Secret: token}
	}
	return e, err
}

// unreadable converts the error of a repository that refuses access. GitHub answers in the same way
// if there is no such repository, so the new error covers both cases.
func (g *gitHub) unreadable(r *gitHubRepository, err error) error {
	if fault.CodeOf(err) != fault.Forbidden {
		return err
	}
	return fault.Wrap(err, fault.Forbidden, "%s at %s does not exist, or is private. Correct its name, or let this server read it: the GitHub App of this server must be installed on it, and the person who added the source must sign in with a GitHub account that may read it.", r.Repo, g.Host)
}

// Check returns the tips of all repositories, separated by spaces.
func (g *gitHub) Check(ctx context.Context, env *Env) (State, error) {
	var tips []string
	for r := range g.all() {
		e, err := g.endpoint(ctx, env, r)
		if err != nil {
			return "", err
		}
		t, err := tip(ctx, env, e, r.Branch)
		if err != nil {
			return "", g.unreadable(r, err)
		}
		tips = append(tips, string(t))
	}
	return State(strings.Join(tips, " ")), nil
}

func (g *gitHub) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	var tips []string
	counted := &totals{Sink: sink}
	for r := range g.all() {
		e, err := g.endpoint(ctx, env, r)
		if err != nil {
			return "", err
		}
		t, err := r.fetch(ctx, env, e, func(p string) string { return g.permalink(r, p) }, counted)
		if err != nil {
			return "", g.unreadable(r, err)
		}
		tips = append(tips, string(t))
	}
	return State(strings.Join(tips, " ")), nil
}

func (g *gitHub) permalink(r *gitHubRepository, p string) string {
	words := strings.Split(p, "/")
	for i, w := range words {
		words[i] = url.PathEscape(w)
	}
	return "https://" + g.Host + "/" + r.Repo + "/blob/" + cmp.Or(r.Branch, "HEAD") + "/" + strings.Join(words, "/")
}

// totals is a Sink for several repositories. It adds up the numbers of files that their fetches
// expect.
type totals struct {
	Sink
	parts []int
}

func (t *totals) Expect(files int) {
	t.parts = append(t.parts, files)
	sum := 0
	for _, n := range t.parts {
		sum += n
	}
	t.Sink.Expect(sum)
}
