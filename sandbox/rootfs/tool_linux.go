package rootfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"satchel/internal/fault"
)

// keptLines is how much of a program's output an error tells.
const keptLines = 8

// tool is the program that fetches, verifies and unpacks.
type tool struct {
	path string
	name string
	root bool
	hide func(string) string // takes passwords out of what it prints
}

// job is one run of a program.
type job struct {
	path   string
	args   []string // which everyone on the machine can read
	stdin  string
	stdout func(io.Reader) error // reads it to its end; nil: its lines are progress
	home   string                // its home directory; default root's
}

// findTool returns the program to build with: mmdebstrap where it is, for it
// works for everyone, or else debootstrap, which needs root.
func findTool(o Options) (tool, error) {
	t := tool{root: os.Geteuid() == 0}
	if _, err := os.Stat(o.Keyring); err != nil {
		return t, fault.New(fault.Unavailable, "Debian's keys are not in %s, and nothing is fetched unverified. Install them: apt-get install debian-archive-keyring", o.Keyring)
	}
	var err error
	if t.path, err = exec.LookPath("mmdebstrap"); err == nil {
		t.name = "mmdebstrap"
		if !t.root {
			return t, mayUnshare()
		}
		return t, nil
	}
	if !t.root {
		return t, fault.New(fault.Unavailable, "As an ordinary user this needs mmdebstrap: apt-get install mmdebstrap uidmap. As root debootstrap will do.")
	}
	if t.path, err = exec.LookPath("debootstrap"); err == nil {
		t.name = "debootstrap"
		return t, nil
	}
	return t, fault.New(fault.Unavailable, "A program that installs Debian into a directory is missing: apt-get install mmdebstrap (or debootstrap)")
}

// mayUnshare says what an ordinary user lacks for mmdebstrap's mode unshare.
func mayUnshare() error {
	for _, name := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(name); err != nil {
			return fault.New(fault.Unavailable, "As an ordinary user mmdebstrap needs %s: apt-get install uidmap", name)
		}
	}
	u, err := user.Current()
	if err != nil {
		return err
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		b, _ := os.ReadFile(file)
		found := false
		for l := range strings.Lines(string(b)) {
			name, _, _ := strings.Cut(l, ":")
			found = found || name == u.Username || name == u.Uid
		}
		if !found {
			return fault.New(fault.Unavailable, "%s gives the user %s no range of ids, which mmdebstrap needs. Let root run: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %[2]s", file, u.Username)
		}
	}
	return nil
}

// install makes the root file system in dir, an empty directory, which is whole
// only where it returns nil.
func (t tool) install(ctx context.Context, o Options, a archives, dir string) error {
	uris := []string{a.mirror}
	for _, u := range a.updates {
		uris = append(uris, u.uri)
	}
	t.hide = hider(uris...)
	if t.name == "mmdebstrap" {
		return t.mmdebstrap(ctx, o, a, dir)
	}
	return t.debootstrap(ctx, o, a, dir)
}

// mmdebstrap writes a tar, which we unpack ourselves: as an ordinary user its
// files would belong to ids that this user could not even delete.
func (t tool) mmdebstrap(ctx context.Context, o Options, a archives, dir string) error {
	mode := "unshare"
	if t.root {
		mode = "root"
	}
	args := []string{
		"--mode=" + mode, "--variant=minbase", "--format=tar", "--keyring=" + o.Keyring, "--include=" + o.packages(),
		`--aptopt=APT::Install-Recommends "false"`, o.Suite, "-", "-",
	}
	return t.run(ctx, o, job{path: t.path, args: args, stdin: a.list(o.Suite),
		stdout: func(out io.Reader) error { return unpack(out, dir) }})
}

// list is the archives as a sources.list.
func (a archives) list(suite string) string {
	var list strings.Builder
	for _, l := range append([]line{{a.mirror, suite, "main"}}, a.updates...) {
		fmt.Fprintf(&list, "deb %s %s %s\n", l.uri, l.suite, l.components)
	}
	return list.String()
}

// debootstrap fetches with wget, which reads passwords from its home directory.
func (t tool) debootstrap(ctx context.Context, o Options, a archives, dir string) (err error) {
	j := job{path: t.path, args: []string{"--variant=minbase", "--force-check-gpg", "--keyring=" + o.Keyring,
		"--include=" + o.packages(), o.Suite, dir, a.mirror}}
	password, err := netrc(a.mirror)
	if err != nil {
		return err
	}
	if password != "" {
		if j.home, err = os.MkdirTemp("", "satchel-rootfs-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(j.home)) }()
		if err := os.WriteFile(filepath.Join(j.home, ".netrc"), []byte(password), 0o600); err != nil {
			return err
		}
		j.args[len(j.args)-1] = shownURL(a.mirror)
	}
	if err := t.run(ctx, o, j); err != nil || len(a.updates) == 0 {
		return err
	}
	o.Progress("Installing updates", false)
	// In the place of debootstrap's own, which lacks the password; strip takes it out.
	list := filepath.Join(dir, "etc/apt/sources.list")
	if err := os.RemoveAll(list); err != nil {
		return err
	}
	if err := os.WriteFile(list, []byte(a.list(o.Suite)), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"update"}, {"--yes", "--no-install-recommends", "dist-upgrade"}} {
		if err := t.run(ctx, o, job{path: "chroot", args: append([]string{dir, "apt-get", "-q"}, args...)}); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program of Debian's and tells its lines as progress. As root it has
// namespaces of its own: whatever it mounts or starts is gone when it ends, so
// that nothing is ever deleted through a mount.
func (t tool) run(ctx context.Context, o Options, j job) error {
	cmd := exec.CommandContext(ctx, j.path, j.args...)
	cmd.Env = environment(o, j.home)
	if j.stdin != "" {
		cmd.Stdin = strings.NewReader(j.stdin)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if t.root {
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = o.KillTime
	lines, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer lines.Close()
	cmd.Stderr, cmd.Stdout = said, said
	var out io.ReadCloser
	if j.stdout != nil {
		cmd.Stdout = nil
		if out, err = cmd.StdoutPipe(); err != nil {
			return errors.Join(err, said.Close())
		}
	}
	if err := cmd.Start(); err != nil {
		said.Close()
		if errors.Is(err, syscall.EPERM) {
			return fault.Wrap(err, fault.Unavailable, "root may make no namespaces here, which %s needs. Build on another machine and copy the directory, or export one from a container.", filepath.Base(j.path))
		}
		return fmt.Errorf("starting %s: %w", j.path, err)
	}
	said.Close()
	kept := make(chan output, 1)
	go func() { kept <- follow(lines, t.hide, o.Progress) }()
	var unpackErr error
	if j.stdout != nil {
		if unpackErr = j.stdout(out); unpackErr == nil {
			_, unpackErr = io.Copy(io.Discard, out) // the padding of the tar
		}
		if unpackErr != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		}
	}
	err = cmd.Wait()
	// What outlived it, in namespaces of its own, has ended or is ended now.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	last := <-kept
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case unpackErr != nil:
		return unpackErr
	case err != nil:
		return fault.Wrap(fmt.Errorf("%w: %s", err, strings.Join(last.all, "\n")), fault.Unavailable,
			"%s failed: %s", filepath.Base(j.path), last.reason(err))
	}
	return nil
}

// environment is what the programs need, and no more of ours.
func environment(o Options, home string) []string {
	if home == "" {
		home = "/root"
	}
	env := []string{"LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=" + home}
	if !o.Epoch.IsZero() {
		env = append(env, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", o.Epoch.Unix()))
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, v := range o.Environ {
		switch name, value, _ := strings.Cut(v, "="); strings.ToLower(name) {
		case "http_proxy", "https_proxy", "no_proxy", "tmpdir":
			env = append(env, v)
		case "path":
			path = value + ":" + path
		}
	}
	return append(env, "PATH="+path)
}

// output is the last lines of a program, keptLines of each kind.
type output struct{ all, errors, warnings []string }

func (o *output) add(line string) {
	keep := func(to *[]string) {
		if *to = append(*to, line); len(*to) > keptLines {
			*to = (*to)[1:]
		}
	}
	keep(&o.all)
	switch {
	case strings.HasPrefix(line, "E: "):
		keep(&o.errors)
	case strings.HasPrefix(line, "W: "):
		keep(&o.warnings)
	}
}

// reason is why the program failed, in its own words where it has some. Where a
// package cannot be installed debootstrap says so in a warning alone.
func (o *output) reason(err error) string {
	switch {
	case len(o.errors) > 0:
		return strings.Join(o.errors, "; ")
	case len(o.warnings) > 0:
		return strings.Join(o.warnings, "; ")
	case len(o.all) > 0:
		return o.all[len(o.all)-1]
	}
	return err.Error()
}

// follow tells a program's lines without passwords, and returns the last of them.
func follow(r io.Reader, hide func(string) string, progress func(string, bool)) (last output) {
	stage := ""
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		text := hide(strings.TrimSpace(in.Text()))
		if text == "" {
			continue
		}
		if next := stageOf(text); next != "" && next != stage {
			stage = next
			progress(stage, false)
		}
		progress(text, true)
		last.add(text)
	}
	_, _ = io.Copy(io.Discard, r) // a line without end
	return last
}

// stageOf tells what a line such as "I: Retrieving git 1:2.39" is a step of;
// empty where it is of none that takes long.
func stageOf(text string) string {
	text, ok := strings.CutPrefix(text, "I: ")
	verb, _, _ := strings.Cut(text, " ")
	switch {
	case !ok:
	case verb == "Retrieving" || verb == "Validating" || verb == "downloading":
		return "Fetching packages"
	case verb == "Extracting" || verb == "Unpacking" || verb == "Configuring" || verb == "installing" || verb == "extracting":
		return "Installing packages"
	}
	return ""
}
