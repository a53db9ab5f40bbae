package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/internal/space"
)

// Fetch fetches a branch of a remote into the git directory gitDir. into is the full name of a ref,
// such as refs/heads/main. Fetch sets this ref to the branch's tip. An empty branch means the
// remote's HEAD. git's fsck checks every object. Fetch fails with OverLimit when gitDir's objects
// have grown by more than limit bytes; 0 means no limit. It calls progress, which may be nil, with
// git's progress lines. An error is an *Error or ctx's cause. gitDir may then have parts of packs.
func (c *Client) Fetch(ctx context.Context, e Endpoint, gitDir, branch, into string, limit int64, progress func(string)) error {
	return c.fetch(ctx, e, gitDir, branch, into, limit, gitcmd.Cmd{Progress: c.onlyProgress(e, gitDir, progress)})
}

// FetchTip is Fetch without the history: the tip has no parents in gitDir. It is for temporary
// repositories, so git does not sync the files to disk.
func (c *Client) FetchTip(ctx context.Context, e Endpoint, gitDir, branch, into string, limit int64) error {
	return c.fetch(ctx, e, gitDir, branch, into, limit, gitcmd.Cmd{Config: []string{temporary}, Args: []string{onlyTip}, Progress: func(string) {}})
}

// FetchTrees is FetchTip without the contents of files, which FetchBlobs fetches. whole is true
// if the server does not support this, and has sent the contents too.
func (c *Client) FetchTrees(ctx context.Context, e Endpoint, gitDir, branch, into string, limit int64) (whole bool, err error) {
	err = c.fetch(ctx, e, gitDir, branch, into, limit, gitcmd.Cmd{
		Config: []string{temporary}, Args: []string{onlyTip, noBlobs},
		Progress: func(line string) { whole = whole || strings.HasPrefix(line, "warning: filtering not recognized") },
	})
	return whole, err
}

const (
	onlyTip   = "--depth=1"
	noBlobs   = "--filter=blob:none"
	temporary = "core.fsync=none" // for a repository that need not outlive a crash
)

// FetchBlobs fetches contents of files that FetchTrees left out. limit is as in Fetch. FetchBlobs
// fails at servers that leave contents out but do not send single contents.
func (c *Client) FetchBlobs(ctx context.Context, e Endpoint, gitDir string, blobs []space.BlobID, limit int64) error {
	var names strings.Builder
	for _, b := range blobs {
		names.WriteString(string(b) + "\n")
	}
	return c.fetchLimited(ctx, e, gitDir, "", limit, gitcmd.Cmd{
		Config: []string{temporary, "fetch.negotiationAlgorithm=noop"}, Args: []string{noBlobs, "--stdin"},
		Stdin: strings.NewReader(names.String()), Progress: func(string) {},
	})
}

func (c *Client) fetch(ctx context.Context, e Endpoint, gitDir, branch, into string, limit int64, cmd gitcmd.Cmd) error {
	from := "HEAD"
	if branch != "" {
		if err := CheckBranch(branch); err != nil {
			return &Error{Problem: BadURL, Op: "fetch", Host: "the remote", Branch: commits.Cut(cleanLine(branch), maxBranch), Err: err}
		}
		from = headsPrefix + branch
	}
	if !strings.HasPrefix(into, "refs/") || CheckBranch(strings.TrimPrefix(into, "refs/")) != nil {
		return fmt.Errorf("fetch into %q, which is no ref", into)
	}
	// git reports success even if it leaves out the branch of a shallow remote.
	leftOut, heard := false, cmd.Progress
	cmd.Progress = func(line string) {
		leftOut = leftOut || strings.HasPrefix(line, "warning: rejected refs/")
		heard(line)
	}
	err := c.fetchLimited(ctx, e, gitDir, branch, limit, cmd, "+"+from+":"+into)
	if err == nil && leftOut {
		p, _ := c.policy(e).check(e.URL)
		return &Error{Problem: Shallow, Op: "fetch", Host: p.host, Branch: branch}
	}
	return err
}

// fetchLimited runs a fetch that brings at most limit bytes.
func (c *Client) fetchLimited(ctx context.Context, e Endpoint, gitDir, branch string, limit int64, cmd gitcmd.Cmd, specs ...string) error {
	cmd.Config = append(gitcmd.FsckConfig("fetch.fsck"), cmd.Config...)
	cmd.Args = append([]string{
		"fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--no-show-forced-updates",
	}, cmd.Args...)
	sized, over, stop := c.limitSize(ctx, gitDir, limit)
	defer stop()
	err := c.transfer(sized, e, "fetch", branch, gitDir, cmd, specs...)
	if err == nil && over() { // the fetch ended before the size was first checked
		err = errOverLimit
	}
	if errors.Is(err, errOverLimit) && ctx.Err() == nil {
		p, _ := c.policy(e).check(e.URL)
		return &Error{Problem: OverLimit, Op: "fetch", Host: p.host, Branch: branch, Err: fmt.Errorf("more than %d bytes came", limit)}
	}
	return err
}

// Push sets a branch of a remote to commit, which is in gitDir, and creates the branch if
// necessary. It never forces: if the branch has commits that commit does not contain, it
// fails with Stale. The error is an *Error or ctx's cause; the remote may have accepted the
// push all the same.
func (c *Client) Push(ctx context.Context, e Endpoint, gitDir string, commit space.CommitID, branch string, progress func(string)) error {
	if err := CheckBranch(branch); err != nil {
		return &Error{Problem: BadURL, Op: "push", Host: "the remote", Branch: commits.Cut(cleanLine(branch), maxBranch), Err: err}
	}
	if !commit.Valid() || commit == zeroCommit { // an empty source would delete the branch
		return fmt.Errorf("push of %q, which is no commit", commit)
	}
	return c.transfer(ctx, e, "push", branch, gitDir, gitcmd.Cmd{
		Config:   []string{"push.followTags=false", "push.gpgSign=false", "push.recurseSubmodules=no", "push.autoSetupRemote=false"},
		Args:     []string{"push", "--porcelain", "--progress", "--no-verify", "--recurse-submodules=no"},
		Progress: c.onlyProgress(e, gitDir, progress),
	}, string(commit)+":"+headsPrefix+branch)
}

// transfer runs one git process that talks to a remote.
func (c *Client) transfer(ctx context.Context, e Endpoint, op, branch, gitDir string, cmd gitcmd.Cmd, specs ...string) error {
	p, err := c.policy(e).check(e.URL)
	if err != nil {
		return &Error{Problem: BadURL, Op: op, Host: "the remote", Branch: branch, Err: err}
	}
	env, err := c.environment(ctx, e, p)
	if err == nil {
		cmd.Dir, cmd.GitDir, cmd.Protocols = gitDir, gitDir, p.protocol
		cmd.Env = append(cmd.Env, env...)
		cmd.Config = append(c.config(), cmd.Config...)
		cmd.Args = append(append(cmd.Args, "--end-of-options", p.url), specs...)
		alive, stop := c.watchStall(ctx, &cmd)
		_, err = c.git(c.o.TransferTimeout).Run(alive, cmd)
		stop()
		if err == nil {
			return nil
		}
		err = classifyGit(err, c.scrubber(e, p, gitDir))
	}
	return c.finish(ctx, call{e: e, p: p, op: op, branch: branch, gitDir: gitDir}, err)
}

// errStalled is also a deadline error: the remote was too slow.
var errStalled = fmt.Errorf("git got no further: %w", context.DeadlineExceeded)

// watchStall ends a run without progress. Only git's own counts on this side are progress,
// because a remote could send anything.
func (c *Client) watchStall(ctx context.Context, cmd *gitcmd.Cmd) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.o.StallTimeout, func() { cancel(errStalled) })
	forward, last := cmd.Progress, ""
	cmd.Progress = func(line string) {
		if at := progressOf(line); at != "" && at != last {
			last = at
			timer.Reset(c.o.StallTimeout)
		}
		forward(line)
	}
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

func (c *Client) git(timeout time.Duration) gitcmd.Runner {
	r := c.o.Git
	r.Timeout = timeout
	return r
}

// config is the configuration of every transfer, without secrets.
func (c *Client) config() []string {
	return []string{
		"http.lowSpeedLimit=" + strconv.Itoa(c.o.LowSpeed),
		"http.lowSpeedTime=" + strconv.Itoa(max(1, int(c.o.LowSpeedTime/time.Second))),
		"http.sslVerify=true",
		"http.emptyAuth=false",
		"http.saveCookies=false",
		"http.userAgent=" + agent,
		"transfer.credentialsInUrl=die",
	}
}

// environment returns variables with the secrets of one run. git reads configuration from these
// variables (git-config(1), ENVIRONMENT), which only this user's and root's processes can see.
func (c *Client) environment(ctx context.Context, e Endpoint, p place) ([]string, error) {
	var kv []string
	set := func(key, value string) {
		n := len(kv) / 2
		kv = append(kv, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
	}
	switch p.protocol {
	case "https", "http":
		if a := e.authorization(); a != "" {
			set("http."+p.url+".extraHeader", "Authorization: "+a)
		}
		if !e.Trusted {
			if c.o.Egress == nil {
				return nil, &Error{Problem: BlockedAddress, Err: errors.New("no egress is configured")}
			}
			set("http.proxy", c.o.Egress.URL().String())
			set("http.proxyAuthMethod", "basic")
		}
		if e.CAFile != "" {
			set("http.sslCAInfo", e.CAFile)
		}
	case "ssh":
		command, err := c.sshCommand(ctx, e, p)
		if err != nil {
			return nil, err
		}
		return []string{"GIT_SSH_COMMAND=" + command, "GIT_SSH_VARIANT=ssh"}, nil
	}
	return append(kv, "GIT_CONFIG_COUNT="+strconv.Itoa(len(kv)/2)), nil
}

// neutralDir returns a directory for runs that need no repository. git finds no repository, and so
// no configuration, in this directory.
func neutralDir() string {
	root, err := filepath.Abs(string(filepath.Separator))
	if err != nil {
		return os.TempDir()
	}
	return root
}

// gitProgress matches a progress line of git. Other lines name our own paths or are for
// Error.Said. The expression must match the whole line, because a remote could append text to
// it. The second group is the progress without the speed.
var gitProgress = expression(`^(remote: )?((?:(?:Enumerating|Counting|Compressing|Receiving|Writing|Unpacking) objects|Resolving deltas|Checking connectivity): ` +
	`(?:[0-9]{1,3}% \([0-9]{1,10}/[0-9]{1,10}\)|[0-9]{1,10})(?:, [0-9.]{1,10} (?:bytes|[KMG]iB))?)` +
	`(?: \| [0-9.]{1,10} (?:bytes|[KMG]iB)/s)?(?:, done\.|, completed with [0-9]{1,10} local objects?\.)?$`)

// onlyProgress returns a function that passes only git's progress lines to progress.
func (c *Client) onlyProgress(e Endpoint, gitDir string, progress func(string)) func(string) {
	p, _ := c.policy(e).check(e.URL)
	scrub := c.scrubber(e, p, gitDir)
	return func(line string) {
		if progress != nil && gitProgress().MatchString(line) {
			progress(scrub.text(line))
		}
	}
}

// progressOf returns the progress on this side from a line of git, or "".
func progressOf(line string) string {
	m := gitProgress().FindStringSubmatch(line)
	if m == nil || m[1] != "" {
		return ""
	}
	return m[2]
}

var errOverLimit = errors.New("the repository is larger than its limit")

// limitSize returns a context that ends when a fetch has brought more than limit bytes. over
// reports whether the fetch has brought more.
func (c *Client) limitSize(ctx context.Context, gitDir string, limit int64) (sized context.Context, over func() bool, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if limit <= 0 {
		return ctx, func() bool { return false }, func() { cancel(nil) }
	}
	objects := filepath.Join(gitDir, "objects")
	before := sizeOf(objects)
	over = func() bool { return sizeOf(objects)-before > limit }
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(c.o.SizeEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if over() {
				cancel(errOverLimit)
				return
			}
		}
	}()
	return ctx, over, func() { cancel(nil); <-done }
}

// sizeOf adds up the sizes of the files below a directory. It ignores files that vanish
// meanwhile.
func sizeOf(dir string) int64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if st, err := d.Info(); err == nil {
				n += st.Size()
			}
		}
		return nil
	})
	return n
}
