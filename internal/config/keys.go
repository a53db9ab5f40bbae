package config

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// key is one row of the table that keys returns. It describes one key completely.
type key struct {
	path   string // such as "server.listen"
	doc    string // sentences for the reference, without line breaks
	flag   string // the name of the flag, without the leading dashes
	form   string // the form of a value, for messages about mistakes
	kind   string // the form of a value, for the reference
	tags   []string
	def    string // the default as text, or its description if it is computed
	secret bool   // its value is never shown
	// set parses and stores a value. Its error must not contain the value.
	set func(text string) error
	// check returns the problem with the stored value, or "" if there is none.
	check func() string
	text  func() string
}

// env returns the key's environment variable, such as SATCHEL_SANDBOX_WALL_TIME for
// sandbox.wall_time.
func (k *key) env() string {
	return "SATCHEL_" + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// row creates a key from a field, its default and its checks.
func row[T any](path string, field *T, c codec[T], def T, doc string, checks ...func(T) string) key {
	return key{
		path: path, doc: doc, form: c.form, kind: c.name, tags: c.tags, def: c.format(def),
		flag: strings.NewReplacer(".", "-", "_", "-").Replace(path),
		set: func(text string) error {
			v, err := c.parse(text)
			if err == nil {
				*field = v
			}
			return err
		},
		text: func() string { return c.format(*field) },
		check: func() string {
			for _, check := range checks {
				if why := check(*field); why != "" {
					return why
				}
			}
			return ""
		},
	}
}

// secretRow creates a key that holds a secret or the path of its file.
func secretRow(path string, field *Secret, doc string) key {
	k := row(path, field, secret, "", doc+" Set it in the file or the variable: other users can see flags. `file:/path` names a file that holds it.", secretFile)
	k.secret = true
	return k
}

// named gives a key a flag that is shorter than its path.
func (k key) named(flag string) key { k.flag = flag; return k }

func (k key) secretly() key { k.secret = true; return k }

func (k key) shown(def string) key { k.def = def; return k }

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)

// keys returns the table for the fields of c, in the order of the reference.
func keys(c *Config) []key {
	server, auth, issuer, box := &c.Server, &c.Auth, &c.Auth.Issuer, &c.Sandbox
	remotes, embeddings, rerank, expand := &c.Remotes, &c.Search.Embeddings, &c.Search.Rerank, &c.Search.Expand
	return []key{
		row("data_dir", &c.DataDir, str, "", "Directory of all data: spaces, the database, the index.", absolute).named("data").shown("$XDG_DATA_HOME/satchel, else ~/.local/share/satchel"),

		row("server.listen", &server.Listen, str, "127.0.0.1:8080", "Address and port to serve MCP on.", required, address).named("listen"),
		row("server.public_url", &server.PublicURL, str, "", "URL under which clients reach the server, if that is not its address.", publicURL).named("public-url"),
		row("server.metrics", &server.Metrics, str, "", "Address and port to serve Prometheus metrics on, without authentication; empty for none. The host of a request must be an IP address, localhost or an allowed host.", address).named("metrics"),
		row("server.allowed_hosts", &server.AllowedHosts, list, nil, "Host names under which the server takes requests, in addition to the loopback names and the host of public_url.", eachOf(host)),
		row("server.allowed_origins", &server.AllowedOrigins, list, nil, "Web origins whose pages may call the server, besides its own.", eachOf(origin)),
		row("server.body_timeout", &server.BodyTimeout, duration, 30*time.Second, "How long the body of a request may take to arrive. If it takes longer, the server refuses the request and closes the connection.", durations(time.Second, time.Hour)),
		row("server.rate", &server.Rate, decimal, 50, "Requests per second that one user may make in the long run; four times as many may come at once.", numbers(0.01, 100_000)),
		row("server.shutdown_grace", &server.ShutdownGrace, duration, 20*time.Second, "How long a shutdown may take. Running commands get 5 seconds of it, and their changes are saved.", durations(0, time.Hour)),
		row("server.domain", &server.Domain, str, "", "Public domain name of the server. The server gets a certificate for it by ACME, and serves https.", domain).named("domain"),
		row("server.https_listen", &server.HTTPSListen, str, ":443", "Address and port for https, if server.domain is set.", required, address),
		row("server.http_listen", &server.HTTPListen, str, ":80", "Address and port that answers ACME's challenges and sends browsers to https, if server.domain is set; if it is empty, the authority can check the domain only over https.", address),
		row("server.acme_url", &server.ACMEURL, str, "https://acme-v02.api.letsencrypt.org/directory", "Directory of the authority that certificates come from.", required, acmeURL),
		row("server.acme_email", &server.ACMEEmail, str, "", "Email address for messages of the authority about certificates.", mailbox),
		row("server.acme_ca_file", &server.ACMECAFile, str, "", "PEM file of further certificate authorities to trust when the server connects to server.acme_url.", absolute),
		row("server.trusted_proxies", &server.TrustedProxies, list, nil, "Networks of reverse proxies whose X-Forwarded-For is trusted for the client's address. The server ignores it from others, and takes its own URL only from public_url.", eachOf(network)),

		row("database.url", &c.Database.URL, str, "", "sqlite:PATH, or postgres://user:password@host/name. Each server needs a database of its own. Set a password in the file or the variable: other users can see flags.", databaseURL).secretly().shown("sqlite:satchel.db in data_dir"),

		row("log.level", &c.Log.Level, enum("debug", "info", "warn", "error"), "info", "The lowest severity to log."),
		row("log.format", &c.Log.Format, enum("text", "json"), "text", "How log lines are written to standard error."),

		row("auth.allow_emails", &auth.AllowEmails, list, nil, "Email addresses whose owners can become users by signing in, if GitHub or the issuer has verified the address. Other people need an invite.", eachOf(emailAddress)),
		row("auth.allow_domains", &auth.AllowDomains, list, nil, "Domains; every verified address there counts as listed in allow_emails.", eachOf(host)),
		row("auth.allow_github_users", &auth.AllowGitHubUsers, list, nil, "GitHub logins whose owners can become users.", eachOf(githubName)),
		row("auth.allow_github_orgs", &auth.AllowGitHubOrgs, list, nil, "GitHub organizations whose members can become users.", eachOf(githubName)),
		row("auth.members_invite", &auth.MembersInvite, boolean, true, "Whether people who are not admins can invite new people to their spaces. Otherwise only an admin can."),
		row("auth.access_lifetime", &auth.AccessLifetime, duration, 7*day, "How long an access token is valid. The server looks it up on each request, so revoking it works at once.", durations(time.Second, 365*day)),
		row("auth.refresh_lifetime", &auth.RefreshLifetime, duration, 90*day, "How long a client can go unused before it must ask for consent again.", durations(time.Second, 3650*day)),
		row("auth.session_lifetime", &auth.SessionLifetime, duration, 180*day, "How long a browser stays signed in at most. It is signed out earlier after 30 days without a visit.", durations(time.Second, 3650*day)),
		row("auth.registration", &auth.Registration, boolean, true, "Whether clients may register themselves, as Cursor and others must."),
		row("auth.client_documents", &auth.ClientDocuments, boolean, true, "Whether clients can name a metadata document for the server to fetch. The server knows those of Claude, ChatGPT and VS Code without fetching."),
		row("auth.rate", &auth.Rate, decimal, 120, "Requests per minute from one address to pages that need no key: sign-in and the authorization server. At most half this number of requests may come at once, and at most half this number of clients can register in an hour.", numbers(0.01, 1_000_000)),

		row("auth.issuer.url", &issuer.URL, str, "", "Issuer whose access tokens clients bring, in place of the built-in authorization server: Auth0, Keycloak, Entra, Supabase.", issuerURL),
		row("auth.issuer.audience", &issuer.Audience, list, nil, "Required audience (aud) of a token; empty for the URL of the MCP endpoint."),
		row("auth.issuer.client_claims", &issuer.ClientClaims, list, []string{"client_id", "azp", "cid", "appid"}, "Claims that can name the client. A token without any of them is a person's session, and is refused.", notEmpty),
		row("auth.issuer.read_scopes", &issuer.ReadScopes, list, []string{"read"}, "The issuer's scopes that let a client read."),
		row("auth.issuer.write_scopes", &issuer.WriteScopes, list, []string{"write"}, "The issuer's scopes that let a client change things."),
		row("auth.issuer.ask_scopes", &issuer.AskScopes, list, nil, "Scopes that clients request, if the issuer uses other names for them in requests than in tokens; empty for read_scopes and write_scopes."),
		row("auth.issuer.default_scopes", &issuer.DefaultScopes, list, nil, "Satchel's scopes (read, write) for a token that has none of read_scopes and write_scopes; empty for none.", eachOf(scopeName)),
		row("auth.issuer.require_claims", &issuer.RequireClaims, list, nil, "Claims that a token must have, as NAME=VALUE.", eachOf(claimPair)),
		row("auth.issuer.email_claim", &issuer.EmailClaim, str, "email", "Claim that holds the person's address."),
		row("auth.issuer.verified_claim", &issuer.VerifiedClaim, str, "email_verified", "Claim that says that the address is verified; empty if all are."),
		row("auth.issuer.name_claim", &issuer.NameClaim, str, "name", "Claim that holds the person's name."),

		row("auth.oidc.url", &auth.OIDC.URL, str, "", "Issuer with which people sign in to the server's pages; empty for none.", issuerURL),
		row("auth.oidc.client_id", &auth.OIDC.ClientID, str, "", "The server's client id at the issuer."),
		secretRow("auth.oidc.client_secret", &auth.OIDC.ClientSecret, "Secret that the issuer gave."),
		row("auth.oidc.label", &auth.OIDC.Label, str, "single sign-on", "Text of the button after \"Sign in with\".", short),

		row("auth.github.client_id", &auth.GitHub.ClientID, str, "", "Client id of a GitHub App or OAuth App, for people to sign in with GitHub; empty for none."),
		secretRow("auth.github.client_secret", &auth.GitHub.ClientSecret, "Client secret of the GitHub App or OAuth App."),
		row("auth.github.url", &auth.GitHub.URL, str, "https://github.com", "GitHub's address; another one for GitHub Enterprise.", required, issuerURL),

		row("auth.mail.url", &auth.Mail.URL, str, "", "Mail server that sends sign-in links: smtps://user@host, or smtp://user@host:587 (which must offer STARTTLS unless it is this machine).", mailURL).secretly(),
		row("auth.mail.from", &auth.Mail.From, str, "", "Sender of the sign-in mails, such as Satchel <satchel@example.com>.", mailbox),
		secretRow("auth.mail.password", &auth.Mail.Password, "Password for the mail server."),
		row("auth.mail.ca_file", &auth.Mail.CAFile, str, "", "PEM file of further certificate authorities to trust for the mail server.", absolute),

		row("tools.prefix", &c.Tools.Prefix, str, "", "Prefix of all tool names, for clients that confuse the tools of several servers.", toolPrefix),

		row("sandbox.runtime", &box.Runtime, enum("gvisor", "none"), "gvisor", "Runtime for bash; none turns bash off."),
		row("sandbox.rootfs", &box.Rootfs, str, "", "Root file system whose programs the sandboxes use; empty for the host's /usr.", absolute),
		row("sandbox.platform", &box.Platform, enum("systrap", "kvm", "ptrace"), "systrap", "How gVisor intercepts system calls."),
		row("sandbox.max", &box.Max, integer, 32, "Sandboxes that can run at the same time.", numbers(1, 10_000)),
		row("sandbox.spare", &box.Spare, integer, 1, "Booted sandboxes that wait for somebody's first command, which then answers sooner. None is booted while the machine has less than 1 GiB of memory available.", numbers(0, 100)),
		row("sandbox.total_memory", &box.TotalMemory, size, 4*gib, "Memory of all sandboxes together, above which idle ones are stopped.", sizes(64*mib, 64*tib)),
		row("sandbox.memory", &box.Memory, size, 512*mib, "Memory of one sandbox, the files it changes and its /tmp included.", sizes(64*mib, tib)),
		row("sandbox.processes", &box.Processes, integer, 256, "Processes and threads of all commands in one sandbox.", numbers(8, 1_000_000)),
		row("sandbox.cpus", &box.CPUs, decimal, 2, "Processors that one sandbox may keep busy.", numbers(0.05, 1024)),
		row("sandbox.disk", &box.Disk, size, 256*mib, "Size of the changed files that one sandbox can hold in its memory. One file can have at most half of this size. /tmp has a quarter of this size in addition.", sizes(4*mib, tib)),
		row("sandbox.idle_stop", &box.IdleStop, duration, 10*time.Minute, "How long an idle sandbox keeps running.", durations(100*time.Millisecond, 30*day)),
		row("sandbox.wall_time", &box.WallTime, duration, 10*time.Minute, "How long one command or background job may run.", durations(time.Second, 30*day)),
		row("sandbox.detach_after", &box.DetachAfter, duration, 45*time.Second, "After this time, a running command becomes a background job and the call returns.", durations(time.Second, 30*day)),

		row("space.max_file", &c.Space.MaxFile, size, 10*mib, "Largest file in a space.", sizes(kib, 2*gib)),
		row("space.max_size", &c.Space.MaxSize, size, gib, "Size of all files of a space. Its whole history, packed, may have four times this size, or 4GiB if that is more.", sizes(kib, tib)),
		row("space.screen_secrets", &c.Space.ScreenSecrets, boolean, true, "Whether to look for keys in files. If a space has a remote, a file with what looks like a key is not committed, because the remote would then refuse every push. In a space without a remote, it is committed with a warning."),

		row("remotes.poll_every", &remotes.PollEvery, duration, 5*time.Minute, "How often the server checks the remote of a space that was used recently. While the space is in use, it checks sixty times as often.", durations(time.Second, 30*day)),
		row("remotes.retry_max", &remotes.RetryMax, duration, 15*time.Minute, "Longest wait between retries of a temporary failure. A failure that a person must fix, such as revoked access, waits four times as long.", durations(time.Millisecond, 30*day)),
		row("remotes.git_memory", &remotes.GitMemory, size, gib, "Memory of one process of git.", sizes(64*mib, tib)),
		row("remotes.allow_networks", &remotes.AllowNetworks, list, nil, "Private networks in which remotes are allowed, such as 10.1.0.0/16.", eachOf(network)),
		row("remotes.allow_ports", &remotes.AllowPorts, list, []string{"443"}, "Ports that remotes can use. A list without 443 forbids 443.", eachOf(port)),
		row("remotes.ca_file", &remotes.CAFile, str, "", "PEM file of further certificate authorities to trust for remotes.", absolute),
		row("remotes.ssh_key", &remotes.SSHKey, str, "", "Private key for ssh remotes; empty for no ssh.", absolute),
		row("remotes.ssh_known_hosts", &remotes.SSHKnownHosts, str, "", "known_hosts file with the allowed ssh hosts.", absolute),

		row("library.allow_sources", &c.Library.AllowSources, list, nil, "Hosts and repositories from which people who are not admins can add sources, such as docs.example.com or github.com/nuxt/*. Without entries, only admins and the operator can."),

		row("snapshot.repo", &c.Snapshot.Repo, str, "", "Repository to which the files of sources that follow an upstream are pushed, as owner/name at auth.github.url or as a URL; empty for none. It needs snapshot.token, or an ssh URL.", short),
		row("snapshot.branch", &c.Snapshot.Branch, str, "main", "Branch of the repository.", required, short),
		secretRow("snapshot.token", &c.Snapshot.Token, "Token that may push to the repository."),
		row("snapshot.restricted", &c.Snapshot.Restricted, boolean, false, "Whether sources that only named people can read are pushed to the repository too."),

		row("search.wait", &c.Search.Wait, duration, 2*time.Second, "If an index falls behind its space, searches wait for the index until it has been behind for this time. After this time, searches do not wait, and say by how much the index is behind.", durations(0, time.Minute)),
		row("search.models_wait", &c.Search.ModelsWait, duration, 1500*time.Millisecond, "How long one search waits for all the models below together. At most a fifth of this time is for the vector of its query.", durations(5*time.Millisecond, time.Minute)),

		row("search.embeddings.url", &embeddings.URL, str, "", "URL of an endpoint in OpenAI's form, such as http://127.0.0.1:11434/v1, or unix:/path of a socket; empty for none.", endpointURL),
		row("search.embeddings.model", &embeddings.Name, str, "", "The model's name at the endpoint; without a URL, the directory of an ONNX model, which satchel-embed runs on this machine."),
		secretRow("search.embeddings.key", &embeddings.Key, "Key for the endpoint."),
		row("search.embeddings.dimensions", &embeddings.Dimensions, integer, 0, "Requested length of vectors; 0 for the model's default.", numbers(0, 16384)),
		row("search.embeddings.query_prefix", &embeddings.QueryPrefix, str, "", "Prefix for queries, if the model needs one, such as \"search_query: \".", short),
		row("search.embeddings.document_prefix", &embeddings.DocumentPrefix, str, "", "Prefix for passages, if the model needs one, such as \"search_document: \".", short),
		row("search.embeddings.max_chars", &embeddings.MaxChars, integer, 6000, "Maximum number of characters of a passage that are embedded. The model must accept this many.", numbers(100, 1_000_000)),

		row("search.rerank.url", &rerank.URL, str, "", "URL of an endpoint in Cohere's or Jina's form, to which /rerank is added; empty for none.", endpointURL),
		row("search.rerank.model", &rerank.Name, str, "", "The model's name at the endpoint; empty if it has only one."),
		secretRow("search.rerank.key", &rerank.Key, "Key for the endpoint."),

		row("search.expand.url", &expand.URL, str, "", "URL of a chat endpoint in OpenAI's form, which suggests other words for a query; empty for none.", endpointURL),
		row("search.expand.model", &expand.Name, str, "", "The model's name at the endpoint."),
		secretRow("search.expand.key", &expand.Key, "Key for the endpoint."),
	}
}

type section struct{ name, doc string }

// sections returns the purpose of each section, for the reference.
func sections() []section {
	return []section{
		{"", ""},
		{"server", "How clients reach the server, and how many requests each can make."},
		{"database", "The database of users, keys and other rows. Spaces are always git repositories in `data_dir`."},
		{"log", "The server's log."},
		{"auth", "Who can use the server, and what clients get. See docs/auth.md."},
		{"auth.issuer", "Another issuer's access tokens, in place of the built-in authorization server. Off without a URL. docs/issuers.md has the settings for Supabase, Auth0, Keycloak and Entra."},
		{"auth.oidc", "Signing in with an OpenID provider. Off without a URL."},
		{"auth.github", "Signing in with GitHub. Off without a client id."},
		{"auth.mail", "Signing in by a mailed link. Off without a URL."},
		{"tools", "How the tools present themselves to clients."},
		{"sandbox", "Where `bash` runs, and its limits."},
		{"space", "Limits of a space."},
		{"remotes", "How spaces are kept in step with repositories elsewhere."},
		{"library", "Sources that people share."},
		{"snapshot", "A repository that has the files of all sources that follow an upstream, as `docs/SOURCE/…`. Off without a repository. See docs/sources.md."},
		{"search", "How long a search waits, and which models it uses."},
		{"search.embeddings", "An embedding model, which finds pages that say the same in other words. Off if neither a URL nor a model is set."},
		{"search.rerank", "A model that reranks the best results. Off without a URL."},
		{"search.expand", "A model that suggests other words for a query. Off without a URL."},
	}
}

// AddFlags adds --data and --config, which every command accepts.
func AddFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "configuration `FILE` (default satchel.yaml in the data directory, else /etc/satchel/satchel.yaml)")
	addKeys(fs, func(k *key) bool { return k.path == "data_dir" })
}

// AddServerFlags adds a flag for every key except data_dir. Commands that run or check a server
// accept these flags.
func AddServerFlags(fs *pflag.FlagSet) {
	addKeys(fs, func(k *key) bool { return k.path != "data_dir" })
}

func addKeys(fs *pflag.FlagSet, want func(*key) bool) {
	for _, k := range keys(new(Config)) {
		if !want(&k) {
			continue
		}
		usage := strings.TrimSuffix(k.doc, ".")
		if strings.HasPrefix(k.form, "one of ") {
			usage += ": " + k.form
		}
		if k.def != "" {
			usage += " (default " + k.def + ")"
		}
		// All flags are texts here, so that Load checks them in the same way as other values.
		f := fs.VarPF(new(textFlag), k.flag, "", strings.ReplaceAll(usage, "`", "'"))
		f.DefValue = ""
	}
}

type textFlag string

func (t *textFlag) String() string     { return string(*t) }
func (t *textFlag) Set(s string) error { *t = textFlag(s); return nil }
func (t *textFlag) Type() string       { return "value" }
