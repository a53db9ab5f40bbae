package remotes

import (
	"cmp"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// words are the texts of a problem for people. For an empty field, transport's own sentence
// is used, which names the host, the branch and the files.
type words struct {
	detail string
	remedy string
	// atGitHub replaces the remedy for remotes at github.com, and byApp for those that a
	// GitHub App connects, there or elsewhere. They say what to open and what to click.
	atGitHub, byApp string
}

// setRemote ends a sentence about a setting of the remote. It names the places where a person
// changes the setting.
const setRemote = "on the page Git remote, or with satchel space remote set"

// newToken says how to create a token at GitHub.
const newToken = "At github.com open Settings → Developer settings → Personal access tokens → Fine-grained tokens and press “Generate new token”. " +
	"Under “Repository access” choose this repository alone, and under “Permissions” set Contents to “Read and write”. " +
	"Then enter the new token " + setRemote + "."

// theApp says where to manage the access of a GitHub App, at github.com or a company's own
// GitHub.
func theApp(r space.Remote) string {
	return "At " + hostOf(r.URL) + " open Settings → Applications → Installed GitHub Apps → Configure"
}

// wordsOf returns the texts that differ from transport's. They are reviewed together:
// testdata/texts.golden shows all of them as people see them.
func wordsOf(p Problem, r space.Remote) words {
	if isDirectory(r) {
		switch p {
		case transport.Forbidden, transport.Gone, transport.Rejected, transport.Malformed:
			return words{} // transport knows what a directory needs
		}
	}
	switch p {
	case transport.Auth:
		switch r.Kind {
		case space.KindNone:
			return words{
				detail:   hostOf(r.URL) + " asks for a token, and none is stored for this space.",
				remedy:   "Make a token at that server which may read and write this repository, and enter it " + setRemote + ".",
				atGitHub: newToken,
			}
		case space.KindSSH:
			return words{
				detail: hostOf(r.URL) + " does not accept this server's SSH key.",
				remedy: "Ask the people who run this server for its public key, and add it to the repository as a deploy key that may write.",
			}
		}
		return words{
			detail:   hostOf(r.URL) + " does not accept the token that is stored for this space.",
			remedy:   "The token is mistyped, has expired, was revoked or belongs to another account. Copy the token again, or make a new one at that server which may read and write this repository. Enter the token " + setRemote + ".",
			atGitHub: "The token is mistyped, has expired, was revoked or belongs to another account. Copy the token again, or make a new one. " + newToken,
			byApp:    theApp(r) + ", and check that the app is not suspended and that this repository is among those it may use.",
		}
	case transport.Forbidden:
		return words{
			remedy:   "Check that the repository is not archived, and that the token may read and write it; if not, make one that may and enter it " + setRemote + ".",
			atGitHub: "Open the repository at github.com. If it says “archived” at the top, its owner can end that under Settings → Danger Zone. Otherwise the token lacks the right to read and write its contents: " + lower(newToken) + " If the repository is an organization's, one of its owners must also approve the token.",
			byApp:    theApp(r) + ", and accept the permissions that the app asks for; an archived repository accepts no changes.",
		}
	case transport.Gone:
		return words{
			remedy:   "Open the URL in a browser. If the repository was renamed, enter its new URL " + setRemote + "; if it was deleted, make an empty one with the same name, and everything is pushed to it; if the page is there, the token may not see the repository: make one that may.",
			atGitHub: "Open the URL in a browser, signed in to github.com. If the page is not found, the repository was renamed or deleted: enter its new URL " + setRemote + ", or make an empty repository with the same name, and everything is pushed to it. If the page is there, the token may not see the repository: " + lower(newToken),
			byApp:    theApp(r) + ", and add this repository to those that the app may use; if it was renamed, enter its new URL " + setRemote + ".",
		}
	case transport.Moved:
		return words{
			remedy: "Open the URL in a browser and see where it leads. If you know that place, enter its URL " + setRemote + ".",
		}
	case transport.ProtectedBranch:
		return words{
			remedy:   "Let the token's owner push to this branch in the server's branch settings, or keep the space in a branch of its own: enter the branch satchel " + setRemote + " --branch satchel.",
			atGitHub: "Keep the space in a branch of its own: enter the branch satchel " + setRemote + " --branch satchel. Or let it push to this one: at github.com open the repository → Settings → Rules → Rulesets, choose the rule and add yourself to its “Bypass list” (older rules are under Settings → Branches).",
			byApp:    "Keep the space in a branch of its own: enter the branch satchel " + setRemote + " --branch satchel. Or let the app push to this one: at " + hostOf(r.URL) + " open the repository → Settings → Rules → Rulesets, choose the rule and add the app to its “Bypass list”.",
		}
	case transport.Workflow:
		return words{
			remedy:   "Remove the files under .github/workflows from what was not pushed yet: run satchel space purge with the file's path and --file. Or give a token that may change workflows.",
			atGitHub: "Remove the files under .github/workflows from what was not pushed yet: run satchel space purge with the file's path and --file. Or at github.com open Settings → Developer settings → Personal access tokens, edit the token and under “Permissions” set Workflows to “Read and write”.",
			byApp:    "Remove the files under .github/workflows from what was not pushed yet: run satchel space purge with the file's path and --file. The app is not allowed to change them.",
		}
	case transport.Secret:
		return words{
			remedy: "First revoke the secret at its provider (or change the password). Then run satchel space purge, which removes the secret from what was not pushed yet and keeps the rest.",
		}
	case transport.TooLarge:
		return words{
			remedy:   "Delete the file from the space, then run satchel space purge with its path and --file, which removes it from what was not pushed yet.",
			atGitHub: "GitHub does not accept files of 100 MB or more. Delete it from the space, then run satchel space purge with its path and --file, which removes it from what was not pushed yet.",
		}
	case transport.Rejected:
		return words{
			remedy:   "Change what the rule asks for, or ask the people who run the repository to change the rule.",
			atGitHub: "At github.com open the repository → Settings → Rules → Rulesets, and see which rule refuses: change it, or add yourself to its “Bypass list”. Or keep the space in a branch of its own: enter the branch satchel " + setRemote + " --branch satchel.",
		}
	case transport.OverLimit:
		return words{remedy: "Use a smaller repository for the space, or ask the people who run this server to raise its limits."}
	case transport.BlockedAddress:
		return words{remedy: "Use a repository on the public internet. The people who run this server can set one in your own network: satchel space remote set with --trusted."}
	case transport.BadURL:
		return words{remedy: "Enter the address that the repository's page shows for cloning by HTTPS, without a user name or token in it, " + setRemote + "."}
	case transport.Shallow:
		return words{
			detail: "The repository at the remote is a shallow clone, which lacks the older history, so nothing can be fetched from it.",
			remedy: "Set the remote to the repository that it was copied from, or ask its owner to complete it with git fetch --unshallow.",
		}
	case transport.Malformed:
		return words{remedy: "Check that the URL is that of a git repository, and not of a page about it. If it is, the repository is damaged: ask its owner to check it with git fsck."}
	case transport.TLS:
		return words{remedy: "Ask the people who run the remote to renew its certificate, or the people who run this server to trust the authority that issued it."}
	case transport.NoGit:
		return words{remedy: "Ask the people who run this server to install git 2.39 or later."}
	case transport.DiskFull:
		return words{remedy: "Ask the people who run the server, here or there, to free some disk space."}
	case transport.Stale, Restless:
		return words{
			detail: "The remote is being changed so often that no push got through.",
			remedy: "Nothing is lost: the server tries again automatically.",
		}
	case NoToken:
		return words{
			detail:   "The token for the remote cannot be read: it was encrypted with another key than the server has now.",
			remedy:   "Enter the token again " + setRemote + ". Or ask the people who run this server to restore its key file from a backup.",
			atGitHub: "Ask the people who run this server to restore its key file from a backup, or make a new token. " + newToken,
		}
	case NoAccess:
		return words{
			detail: "GitHub gives the app no access to this repository.",
			remedy: keptByApp, // the App's error says what to do
		}
	case Missing:
		return words{
			detail: "The space is not on this server's disk.",
			remedy: "Ask the people who run this server to restore it from a backup.",
		}
	case transport.Unknown:
		return words{remedy: "Nothing is lost: the server tries again automatically. If the problem stays, the server's log says why."}
	case Internal:
		return words{
			detail: "The sync failed in this server.",
			remedy: "Nothing is lost: the server tries again automatically. If the problem stays, the server's log says why.",
		}
	}
	return words{}
}

// kept ends the remedy of most problems that only a person can solve.
const kept = keptByApp + " To try at once, press “Sync now” on the page Git remote, or run satchel space sync."

// keptByApp replaces kept for problems that are solved on the pages.
const keptByApp = "Meanwhile all changes are safe on this server, which tries again every hour."

// doOf returns the part of a remedy that says what to do, without what happens meanwhile.
func doOf(remedy string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(remedy, kept), keptByApp))
}

// doBelow returns doOf a remedy for a page that has the form of the remote below the text.
func doBelow(remedy string) string {
	return strings.NewReplacer(setRemote+" --branch satchel", "below", setRemote, "below").Replace(doOf(remedy))
}

// foreign is the remedy for a valid repository with content that no space can have.
const foreign = "Change the repository at the remote, or use another one for the space."

// lower prepares a sentence to continue after a colon.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// explain describes a failed sync of a remote.
func explain(r space.Remote, err error) *trouble {
	t := &trouble{problem: problemOf(err), err: err}
	t.slow = isSlow(t.problem)
	w := wordsOf(t.problem, r)
	// An error of another package has no transport.Error, so this one stands for it; see problemOf.
	remote := &transport.Error{Problem: t.problem, Host: hostOf(r.URL), Branch: r.Branch}
	if asRemote(err, &remote) {
		t.locations, t.retryAfter = remote.Paths, remote.RetryAfter
	} else if c := fault.CodeOf(err); c != fault.Internal && c != fault.NotFound && t.problem != NoToken {
		w.detail = fault.PublicOf(err) // the error's text is more precise
		if t.problem == transport.Malformed {
			w.remedy = foreign
		}
	}
	t.detail, t.remedy = cmp.Or(w.detail, remote.Public()), cmp.Or(w.remedy, remote.Remedy())
	switch {
	case r.Kind == space.KindGitHub && w.byApp != "":
		t.remedy = w.byApp
	case r.Kind == space.KindGitHub:
	case isAtGitHub(r) && w.atGitHub != "":
		t.remedy = w.atGitHub
	}
	if remote.CheckedOut() {
		t.detail, t.remedy = remote.Public(), remote.Remedy()
	}
	if t.problem == transport.Secret {
		if link := allowLink(remote.Said); link != "" && isAtGitHub(r) {
			t.remedy += " If it is not a real secret, allow it at " + link + " instead."
		}
	}
	if t.slow && t.problem != Missing && t.remedy != keptByApp {
		t.remedy += " " + kept
	}
	return t
}

// isAtGitHub reports whether a remote is at github.com.
func isAtGitHub(r space.Remote) bool {
	u, err := url.Parse(r.URL)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "github.com" || host == "www.github.com" || host == "ssh.github.com"
}

// isDirectory reports whether a remote is a directory of this machine.
func isDirectory(r space.Remote) bool {
	u, err := url.Parse(r.URL)
	return filepath.IsAbs(r.URL) || err == nil && strings.EqualFold(u.Scheme, "file")
}

// unblock matches the address of the page on which GitHub's push protection lets people allow a
// secret.
var unblock = regexp.MustCompile(`https://github\.com/[A-Za-z0-9._-]+/[A-Za-z0-9._-]+/security/secret-scanning/unblock-secret/[A-Za-z0-9_-]+`)

func allowLink(said []string) string {
	for _, line := range said {
		if link := unblock.FindString(line); link != "" {
			return link
		}
	}
	return ""
}
