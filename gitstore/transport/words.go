package transport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"satchel/gitstore/commits"
)

// Public returns one sentence that says what is wrong. People and AIs read the sentence, so the
// remote's own words in it are quoted and cut.
func (e *Error) Public() string {
	host, branch := cmp.Or(e.Host, "the remote"), "the branch"
	if e.Branch != "" {
		branch += " " + quoted(e.Branch)
	}
	switch e.Problem {
	case Auth:
		return fmt.Sprintf("%s does not accept the credential for this repository.", host)
	case Forbidden:
		if e.local() {
			return fmt.Sprintf("The user that the server runs as may not use the directory%s.", e.quote())
		}
		return fmt.Sprintf("%s does not let this credential %s the repository%s.", host, e.doing(), e.quote())
	case Gone:
		if e.local() {
			return "There is no git repository at that path of the server's machine."
		}
		return fmt.Sprintf("%s has no such repository, or this credential may not see it.", host)
	case Moved:
		return fmt.Sprintf("The repository is no longer at this URL: %s sends to %s.", host, e.target())
	case ProtectedBranch:
		return fmt.Sprintf("%s protects %s: it accepts no direct pushes.", host, branch)
	case Workflow:
		return fmt.Sprintf("%s refuses the push: it changes %s, which this credential may not change.", host, e.places("a file under .github/workflows"))
	case Secret:
		return fmt.Sprintf("%s refuses the push: it found a secret in %s.", host, e.places("what was committed"))
	case TooLarge:
		return fmt.Sprintf("%s refuses the push: %s is too large for it.", host, e.places("a file, or the push as a whole,"))
	case OverLimit:
		if e.Memory {
			return fmt.Sprintf("To %s the repository at %s, git would need more memory than this server gives it.", e.doing(), host)
		}
		return "The remote repository is larger than a space can be."
	case Rejected:
		if e.CheckedOut() {
			return "The remote is somebody's working copy, with this branch's files checked out, and accepts no pushes to it."
		}
		if e.local() {
			return fmt.Sprintf("A rule of the repository refuses the push%s.", e.quote())
		}
		return fmt.Sprintf("A rule of %s refuses the push%s.", host, e.quote())
	case RateLimited:
		return fmt.Sprintf("%s has received too many requests, and asks this server to wait.", host)
	case Server:
		return fmt.Sprintf("%s had an internal error.", host)
	case Network:
		return fmt.Sprintf("%s cannot be reached, or the connection broke.", host)
	case DNS:
		return fmt.Sprintf("The name %s is unknown.", host)
	case TLS:
		return fmt.Sprintf("The certificate of %s is not accepted.", host)
	case Timeout:
		return fmt.Sprintf("%s was too slow.", host)
	case BlockedAddress:
		return fmt.Sprintf("%s is at an address that this server does not connect to.", host)
	case BadURL:
		return "The remote's URL or branch is not one that this server uses."
	case Shallow:
		return "The remote repository is a shallow clone, without its whole history."
	case Malformed:
		if e.local() {
			return fmt.Sprintf("The directory is not a valid git repository%s.", e.quote())
		}
		return fmt.Sprintf("%s sent something that is not a valid git repository%s.", host, e.quote())
	case NoBranch:
		return fmt.Sprintf("The remote repository does not have %s.", branch)
	case Stale:
		return fmt.Sprintf("At %s, %s has changes that are not here yet.", host, branch)
	case Busy:
		return fmt.Sprintf("Another push to %s is under way.", host)
	case NoGit:
		return "The git program is not installed on the server."
	case DiskFull:
		return "No space is left on a disk, here or at the remote."
	}
	return fmt.Sprintf("The repository at %s could not be used%s.", host, e.quote())
}

// Remedy returns one or two sentences that say what a person can do.
func (e *Error) Remedy() string {
	switch e.Problem {
	case Auth:
		return "Give a new token that may read and write this repository's contents."
	case Forbidden:
		if e.local() {
			return "Give the directory and everything in it to the user that the server runs as."
		}
		return "Give a token that may read and write this repository's contents, or ask its owner for that right; an archived repository accepts no pushes."
	case Gone:
		if e.local() {
			return "Check the path, or make an empty repository there with git init --bare; the user that the server runs as must be able to read and write it."
		}
		return "Check the URL, and that the credential has access to this repository; a deleted one must be made again first."
	case Moved:
		return "Set the remote to the new URL, if you trust it."
	case ProtectedBranch:
		return "Let the credential's owner pass the protection, or choose another branch for this space."
	case Workflow:
		return "Give a credential with the permission to change workflows, or remove these files from the space."
	case Secret:
		return "Revoke the secret; then remove it from what was never pushed with satchel space purge, or allow it at the remote."
	case TooLarge:
		return "Remove the file from the space and from what was never pushed with satchel space purge, or store it elsewhere."
	case OverLimit:
		if e.Memory {
			return "Use a repository without such large files or versions of them, or ask the operator to raise the limit of git's memory."
		}
		return "Use a smaller repository, or ask the operator to raise the limit."
	case Rejected:
		if e.CheckedOut() {
			return "Use a bare repository, which has no files checked out: make one with git init --bare, and set the remote to it. Or choose another branch for this space."
		}
		return "Change what the rule asks for, or the rule at the remote; the server then tries the push again."
	case RateLimited, Server, Busy:
		return "Nothing is lost: the server tries again automatically."
	case Network, DNS, Timeout:
		return "Nothing is lost: the server tries again automatically; check the URL if the problem stays."
	case TLS:
		return "Renew the server's certificate, or have the operator add its authority."
	case BlockedAddress:
		return "Use a public https URL, or ask the operator to set this remote."
	case BadURL:
		return "Set an https URL without a user name or password in it, and a branch by its plain name."
	case Shallow:
		return "Run git fetch --unshallow in the remote repository."
	case Malformed:
		if e.local() {
			return "Check the path, and run git fsck in the repository."
		}
		return "Check that the URL is a git repository's, and run git fsck in it."
	case NoBranch:
		return "Check the branch's name; a push makes it."
	case Stale:
		return "Nothing to do: both sides are merged and pushed again."
	case NoGit:
		return "Install git 2.39 or later on the server."
	case DiskFull:
		return "Free disk space."
	}
	return "Look for git's message in the server's log."
}

// CheckedOut reports whether a push was refused because the remote is not a bare repository
// and has the branch checked out.
func (e *Error) CheckedOut() bool {
	return e.Problem == Rejected && slices.ContainsFunc(e.Said, func(line string) bool {
		return strings.Contains(line, "refusing to update checked out branch") || strings.Contains(line, "branch is currently checked out")
	})
}

// local reports whether the remote is a directory.
func (e *Error) local() bool { return e.Host == thisMachine }

func (e *Error) doing() string {
	if e.Op == "push" {
		return "push to"
	}
	return "read"
}

// target names the place to which a repository has moved.
func (e *Error) target() string {
	if e.Target == "" {
		return "another place"
	}
	return quoted(e.Target)
}

// places names the first few of e.Paths. If there are none, it returns the text otherwise.
func (e *Error) places(otherwise string) string {
	const shown = 3
	var names []string
	for _, l := range e.Paths {
		if l.Path == "" {
			continue
		}
		s := quoted(l.Path)
		if l.Line > 0 {
			s += fmt.Sprintf(" line %d", l.Line)
		}
		if l.Rule != "" {
			s += " (" + quoted(l.Rule) + ")"
		}
		names = append(names, s)
	}
	switch {
	case len(names) == 0:
		return otherwise
	case len(names) > shown:
		return fmt.Sprintf("%s and %d more places", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// quote returns the beginning of the remote's message, for the end of a sentence.
func (e *Error) quote() string {
	if len(e.Said) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%q)", commits.Cut(e.Said[0], maxQuoted))
}
