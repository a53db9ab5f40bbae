package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/internal/egress"
)

// classifyGo classifies an error of Go's own network code.
func classifyGo(err error, scrub scrubber) *Error {
	var (
		blocked  *egress.BlockedError
		port     *egress.PortError
		dns      *net.DNSError
		tooBig   *http.MaxBytesError
		said     *remoteError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		netErr   net.Error
		urlErr   *url.Error
	)
	out := &Error{Problem: Unknown, Err: err}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		out.Problem = NoGit
	case errors.As(err, &blocked), errors.As(err, &port):
		out.Problem = BlockedAddress
	case errors.As(err, &said):
		if out.Problem = classifyWords(said.text); out.Problem == Unknown {
			out.Problem = Rejected
		}
		out.Said = saidIn(scrub.text(said.text))
	case errors.As(err, &dns):
		out.Problem = DNS
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert),
		errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid):
		out.Problem = TLS
	case errors.As(err, &tooBig), errors.Is(err, errNoGit):
		out.Problem = Malformed
	case errors.Is(err, syscall.ENOSPC):
		out.Problem = DiskFull
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		out.Problem = Timeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errContradiction), errors.As(err, &netErr), errors.As(err, &urlErr):
		out.Problem = Network
	}
	return out
}

// problemOfStatus returns what an HTTP status means to a git client.
func problemOfStatus(status int) Problem {
	switch {
	case status >= 300 && status < 400:
		return Moved
	case status == http.StatusUnauthorized:
		return Auth
	case status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return Forbidden
	case status == http.StatusNotFound, status == http.StatusGone, status == http.StatusUnavailableForLegalReasons:
		return Gone
	case status == http.StatusRequestTimeout:
		return Timeout
	case status == http.StatusConflict, status == http.StatusLocked, status == http.StatusTooEarly:
		return Busy
	case status == http.StatusRequestEntityTooLarge:
		return TooLarge
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusInsufficientStorage:
		return DiskFull
	case status >= 500:
		return Server
	}
	return Unknown
}

// classifyHTTP classifies an answer to List that is not a list of refs.
func classifyHTTP(resp *http.Response, body string, now time.Time, scrub scrubber) *Error {
	out := &Error{Problem: problemOfStatus(resp.StatusCode), Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header, now)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		said := scrub.text(body)
		if len(body) >= maxErrorBody {
			said = scrub.cutOff(body)
		}
		out.Said = saidIn(said)
	}
	if resp.StatusCode == http.StatusForbidden && (out.RetryAfter > 0 || outOfRequests(resp.Header) || classifyWords(body) == RateLimited) {
		out.Problem = RateLimited
	}
	if out.Problem == TooLarge { // a request of List has no body that could be too large
		out.Problem = Server
	}
	return out
}

// classifyGit classifies a failed run of git.
func classifyGit(err error, scrub scrubber) *Error {
	var g *gitcmd.Error
	if !errors.As(err, &g) {
		return classifyGo(err, scrub)
	}
	out := readGit(scrub.text(string(g.Stdout)), scrub.text(g.Stderr))
	out.Err = err
	if gitcmd.OutOfMemory(err) {
		// git's other messages only report consequences of the lack of memory.
		out.Problem, out.Memory = OverLimit, true
	}
	return out
}

// readGit reads what git printed when it failed. Lines that begin with "remote: " are the
// remote's: they say why a push was refused, but git's own messages have priority.
func readGit(stdout, stderr string) *Error {
	var local, remote []string
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(line, "remote:"); ok {
			remote = append(remote, strings.TrimRight(text, " \r\n"))
		} else {
			local = append(local, line)
		}
	}
	mine, theirs := strings.Join(local, ""), strings.Join(remote, "\n")
	out := &Error{Problem: Unknown, Said: saidIn(theirs)}
	switch reason, ref := refusal(stdout); {
	case reason != "":
		out.Problem = problemOfRefusal(reason, ref, theirs, mine)
		if len(out.Said) == 0 {
			out.Said = []string{commits.Cut(cleanLine(reason), maxSaid)}
		}
		out.Paths = places(reason, remote)
	default:
		out.Problem, out.Status = problemOfRun(mine, theirs)
		if m := fsckLine().FindStringSubmatch(mine); m != nil && out.Problem == Malformed {
			out.Said = append([]string{commits.Cut(cleanLine(m[1]), maxSaid)}, out.Said...)
		}
	}
	return out
}

// fsckLine matches git's message about an object that it refuses, such as "object 1f…:
// hasDotgit: contains '.git'".
var fsckLine = expression(`(?m)^error: (object [0-9a-f]{40}: [A-Za-z]+: .*)$`)

// chatter matches progress messages of git's own programs at the remote.
var chatter = expression(`^(Enumerating|Counting|Compressing|Receiving|Writing|Unpacking) objects:|^Resolving deltas:|^Total \d+ \(delta`)

// rejectedLine matches a line of push --porcelain about a refused ref (git-push(1),
// OUTPUT).
var rejectedLine = expression(`(?m)^!\t[^\t]*\t\[([a-z ]+)\](?: \((.*)\))?$`)

// refusal returns why a push of the one ref was refused. by is "rejected" if git refused it,
// and "remote rejected" if the remote did.
func refusal(stdout string) (reason, by string) {
	m := rejectedLine().FindStringSubmatch(stdout)
	if m == nil {
		return "", ""
	}
	if m[2] == "" {
		return m[1], m[1]
	}
	return m[2], m[1]
}

// problemOfRefusal returns the problem of a refused push. reason and by are the results of refusal.
// theirs are the messages of the remote, and mine those of git on this machine.
func problemOfRefusal(reason, by, theirs, mine string) Problem {
	if by == "rejected" {
		return Stale // git compared the branches before it sent anything: "fetch first", "non-fast-forward"
	}
	// The reason is more precise than the remote's messages, unless it only says that a hook
	// declined, or that a ref is locked.
	p := classifyWords(reason)
	if said := classifyWords(theirs); said != Unknown && (p == Unknown || p == Rejected || p == Busy) {
		return said
	}
	if p != Unknown {
		return p
	}
	if strings.Contains(reason, "unpacker error") || strings.Contains(reason, "remote failed to report status") {
		if p, _ := problemOfRun(mine, ""); p != Unknown {
			return p
		}
		return Server
	}
	return Rejected
}

// words are messages of remotes and git, in lower case, with their meaning. The first match
// wins, so precise messages come first.
var words = []struct {
	problem Problem
	any     []string
}{
	{Secret, []string{"push cannot contain secrets", "gh009: secrets detected", "secrets detected in code changes", "contains one or more secrets", "secret detected", "secrets detected"}},
	{Workflow, []string{"to create or update workflow", "`workflows` permission", "`workflow` scope"}},
	{TooLarge, []string{"gh001:", "exceeds github's file size limit", "large files detected", "pack exceeds maximum allowed size", "is larger than the allowed size", "exceeds maximum allowed size", "exceeds maximum object size", "file size limit exceeded", "exceeds the limit of", "repository size limit", "over its data quota", "push size limit"}},
	{ProtectedBranch, []string{"gh006:", "protected branch", "protected ref", "changes must be made through a pull request", "you must use a pull request", "pushes to this branch are not permitted", "creations being restricted", "permission denied to update branch"}},
	{Stale, []string{"non-fast-forward", "fetch first", "but expected"}},
	{Busy, []string{"cannot lock ref", "failed to lock", "failed to update ref", "unable to lock", ".lock': file exists", "reference already exists", "incorrect old value provided"}},
	{Shallow, []string{"shallow update not allowed", "from a shallow repository"}},
	{RateLimited, []string{"rate limit", "too many requests", "abuse detection"}},
	{Auth, []string{"invalid username or token", "invalid username or password", "invalid credentials", "authentication is not supported", "password authentication was removed", "bad credentials", "http basic: access denied", "authentication failed", "personal access token expired", "token has expired"}},
	{Forbidden, []string{"write access to repository not granted", "resource not accessible by", "permission to ", "was archived", "is archived", "read-only", "read only", "suspended", "has been disabled", "enforced saml sso", "ip allow list", "not allowed to push code to this project", "not allowed to upload code", "you are not allowed", "genericcontribute", "insufficient permission", "permission denied", "not permitted", "dubious ownership"}},
	{Gone, []string{"repository not found", "could not be found", "does not appear to be a git repository", "no such repository"}},
	{DiskFull, []string{"no space left on device", "out of diskspace", "disk quota exceeded"}},
	{Server, []string{"internal server error", "internal error", "service unavailable"}},
	{Rejected, []string{"gh013:", "gh007:", "gh008:", "hook declined", "rule violations", "refusing to update checked out branch", "branch is currently checked out", "unknown git lfs object"}},
}

// classifyWords returns the problem that a remote's text means.
func classifyWords(text string) Problem {
	low := strings.ToLower(text)
	for _, w := range words {
		for _, s := range w.any {
			if strings.Contains(low, s) {
				return w.problem
			}
		}
	}
	return Unknown
}

// gitWords are messages of git, curl and ssh on this side, in lower case.
var gitWords = []struct {
	problem Problem
	any     []string
}{
	{Malformed, []string{"fsck error", "error in object", "error in tree", "error in commit", "error in blob", "error in tag"}},
	{DiskFull, []string{"no space left on device", "out of diskspace", "disk quota exceeded"}},
	{BadURL, []string{"' not allowed", "is not a valid", "credentials in url"}},
	{Auth, []string{"could not read username", "could not read password", "authentication failed", "permission denied (publickey", "permission denied, please try again", "no supported authentication"}},
	{TLS, []string{"host key verification failed", "remote host identification has changed", "certificate", "server verification failed", "unable to get local issuer"}},
	{NoBranch, []string{"couldn't find remote ref"}},
	{Shallow, []string{"shallow"}},
	{DNS, []string{"could not resolve", "name or service not known", "temporary failure in name resolution", "nodename nor servname"}},
	{Timeout, []string{"operation too slow", "timed out", "timeout"}},
	{Network, []string{"failed to connect", "could not connect", "couldn't connect", "connection refused", "connection reset", "connection closed", "no route to host",
		"network is unreachable", "empty reply", "early eof", "unexpected disconnect", "hung up unexpectedly", "non-properly terminated", "rpc failed; curl", "send failure",
		"recv failure", "recv error", "transfer closed", "broken pipe", "unexpected eof", "http/2 stream", "unable to rewind rpc post data", "expected flush after", "remote end hung up"}},
	{TLS, []string{"ssl", "tls"}},
	{Gone, []string{"not found", "does not appear to be a git repository", "not a git repository", "does not exist", "no such file or directory"}},
	{Forbidden, []string{"dubious ownership", "permission denied"}},
	{Moved, []string{"unable to update url base from redirection"}},
	{Malformed, []string{"index-pack failed", "invalid index-pack output", "pack has bad object", "pack is corrupted", "pack signature mismatch", "bad pack", "inflate", "bad line length", "protocol error",
		"did not send all necessary objects", "is this a git repository", "invalid server response", "expected service", "unexpected line", "garbage", "corrupt", "bad object", "unknown object format", "mismatched algorithms"}},
	{Busy, []string{"cannot lock ref", ".lock': file exists"}},
	{Network, []string{"could not read from remote repository"}}, // last, because it follows many other messages
}

// connectStatus matches git's message if our own proxy refuses a tunnel. httpStatus matches
// git's message if the remote answers with an error.
var (
	connectStatus = expression(`(?:CONNECT tunnel failed, response |Received HTTP code )(\d{3})`)
	httpStatus    = expression(`(?:The requested URL returned error: |RPC failed; HTTP )(\d{3})`)
)

// problemOfRun returns the problem of a failed run of git that did not report a refused ref. It
// also returns the HTTP status of the remote's answer, or 0. mine and theirs are as in
// problemOfRefusal.
func problemOfRun(mine, theirs string) (Problem, int) {
	if m := connectStatus().FindStringSubmatch(mine); m != nil {
		n, _ := strconv.Atoi(m[1])
		switch n {
		case egress.StatusBlocked:
			return BlockedAddress, 0
		case egress.StatusNoHost:
			return DNS, 0
		case egress.StatusTimeout:
			return Timeout, 0
		}
		return Network, 0
	}
	low := strings.ToLower(mine)
	if m := httpStatus().FindStringSubmatch(mine); m != nil {
		n, _ := strconv.Atoi(m[1])
		p := problemOfStatus(n)
		if p == Forbidden && classifyWords(theirs) == RateLimited {
			p = RateLimited
		}
		return p, n
	}
	for _, w := range gitWords {
		for _, s := range w.any {
			if strings.Contains(low, s) {
				return w.problem, 0
			}
		}
	}
	return classifyWords(theirs), 0
}

// saidIn returns the lines of a remote's text that are meant for people.
func saidIn(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = cleanLine(line)
		if chatter().MatchString(line) || strings.Trim(line, "—-–=_* ") == "" {
			continue
		}
		if out = append(out, commits.Cut(line, maxSaid)); len(out) == maxSaidLines {
			break
		}
	}
	return out
}
