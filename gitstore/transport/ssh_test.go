package transport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/egress"
	"satchel/internal/egress/egresstest"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// fakeSSH replaces the network and the server. It asks the real client how it reads the options
// (ssh -G), records the answer, and runs the command here.
func fakeSSH(t *testing.T) (ssh *transport.SSH, would func() string) {
	t.Helper()
	real := testenv.NeedProgram(t, "ssh")
	dir := filepath.Join(t.TempDir(), `a "dir" of 50% 'odd' names`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	program := filepath.Join(dir, "ssh")
	// The last argument is the command, in which git has no path.
	script := fmt.Sprintf("#!/bin/sh\n%s -G \"$@\" >> %s 2>&1 || exit 255\nenv >> %s\nwhile [ $# -gt 1 ]; do shift; done\nexec sh -c \"$1\"\n", real, log, log)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &transport.SSH{Program: program, KeyFile: filepath.Join(dir, "key"), KnownHosts: filepath.Join(dir, "known")}, func() string {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

func TestSSHDoesOnlyWhatItMust(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	ssh, would := fakeSSH(t)
	resolver := egresstest.Resolver(t, egresstest.Answers{"git.example.org": {egresstest.Addrs("127.0.0.1", "140.82.112.3")}})
	r.c = transport.New(transport.Options{Egress: proxy(t, egress.Options{Resolver: resolver})})
	e := transport.Endpoint{URL: "ssh://git@git.example.org" + r.Dir("notes"), SSH: ssh, Credential: space.Credential{Secret: secret}}
	t.Setenv("SSH_AUTH_SOCK", "/run/somebody's agent")
	refs, err := r.c.List(t.Context(), e)
	if err != nil || string(refs.Heads["main"]) != r.Head("notes", "main") || refs.Default != "main" {
		t.Fatalf("listed %+v, %v\n%s", refs, err, would())
	}
	dir := repo(t)
	if err := r.c.Fetch(t.Context(), e, dir, "main", "refs/heads/x", 1<<20, nil); err != nil {
		t.Fatal(err)
	}
	mine := commit(t, dir, r.Head("notes", "main"), "b.md", "mine\n")
	if err := r.c.Push(t.Context(), e, dir, space.CommitID(mine), "main", nil); err != nil || r.Head("notes", "main") != mine {
		t.Fatal(err)
	}
	got := would()
	for _, line := range []string{
		"user git", "hostname 140.82.112.3", "hostkeyalias git.example.org", "batchmode yes", "stricthostkeychecking true",
		"identitiesonly yes", "identityagent none", "clearallforwardings yes", "permitlocalcommand no", "forwardagent no",
		"globalknownhostsfile /dev/null", "updatehostkeys false", "preferredauthentications publickey",
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("ssh would not have %q", line)
		}
	}
	for _, bad := range []string{"proxycommand ", "proxyjump ", secret, "SSH_AUTH_SOCK", "canary"} {
		if strings.Contains(got, bad) {
			t.Errorf("ssh has %q: %s", bad, got)
		}
	}
	// ssh -G prints the key's name before it replaces %%.
	for _, line := range []string{"identityfile " + strings.ReplaceAll(ssh.KeyFile, "%", "%%"), "userknownhostsfile " + ssh.KnownHosts} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("ssh would not have %q", line)
		}
	}
}

// Attack: a host is public for the check and private for ssh, or only private.
func TestSSHIsGivenTheAddressThatWasJudged(t *testing.T) {
	ssh, _ := fakeSSH(t)
	resolver := egresstest.Resolver(t, egresstest.Answers{"loop.example.org": {egresstest.Addrs("127.0.0.1", "::1", "10.0.0.1")}})
	c := transport.New(transport.Options{Egress: proxy(t, egress.Options{Resolver: resolver})})
	everyCall(t, c, transport.Endpoint{URL: "ssh://git@loop.example.org/x.git", SSH: ssh}, transport.BlockedAddress)
	everyCall(t, c, transport.Endpoint{URL: "ssh://git@none.example.org/x.git", SSH: ssh}, transport.DNS)
	everyCall(t, transport.New(transport.Options{}), transport.Endpoint{URL: "ssh://git@loop.example.org/x.git", SSH: ssh}, transport.BlockedAddress)
	everyCall(t, c, transport.Endpoint{URL: "ssh://git@140.82.112.3/x.git"}, transport.BadURL)
}

func TestSSHNeedsAKeyAndKnownHosts(t *testing.T) {
	c := transport.New(transport.Options{})
	_, err := c.List(t.Context(), transport.Endpoint{URL: "ssh://git@example.org/x.git", Trusted: true, SSH: &transport.SSH{KeyFile: "key"}})
	fails(t, err, transport.Unknown)
}
