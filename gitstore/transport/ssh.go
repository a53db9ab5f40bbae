package transport

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
)

// sshCommand returns the command that git runs for an ssh:// URL, quoted for the shell.
// The address of a user's host is looked up and checked here, and ssh gets only this
// address, because its own lookup could return another one.
func (c *Client) sshCommand(ctx context.Context, e Endpoint, p place) (string, error) {
	if !filepath.IsAbs(e.SSH.KeyFile) || !filepath.IsAbs(e.SSH.KnownHosts) {
		return "", errors.New("the ssh key and the known hosts need their whole paths")
	}
	options := []string{
		"BatchMode=yes",
		"StrictHostKeyChecking=yes",
		"UserKnownHostsFile=" + sshQuote(e.SSH.KnownHosts),
		"GlobalKnownHostsFile=/dev/null",
		"IdentitiesOnly=yes",
		"IdentityAgent=none",
		"IdentityFile=" + sshQuote(e.SSH.KeyFile),
		"PreferredAuthentications=publickey",
		"ClearAllForwardings=yes",
		"ForwardAgent=no",
		"PermitLocalCommand=no",
		"ProxyCommand=none",
		"ProxyJump=none",
		"ControlPath=none",
		"UpdateHostKeys=no",
		"CanonicalizeHostname=no",
		"ConnectTimeout=15",
		"ServerAliveInterval=15",
		"ServerAliveCountMax=4",
	}
	if !e.Trusted {
		if c.o.Egress == nil {
			return "", &Error{Problem: BlockedAddress, Err: errors.New("no egress is configured")}
		}
		addr, err := c.o.Egress.Resolve(ctx, p.host)
		if err != nil {
			return "", err
		}
		options = append(options, "HostName="+addr.String(), "HostKeyAlias="+p.host, "CheckHostIP=no")
	}
	words := []string{shellQuote(cmp.Or(e.SSH.Program, "ssh")), "-F", "/dev/null", "-T", "-x", "-a"}
	for _, o := range options {
		words = append(words, "-o", shellQuote(o))
	}
	return strings.Join(words, " "), nil
}

// shellQuote quotes a word for the shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// sshQuote quotes an argument of an ssh option, in which % and quotes are special.
func sshQuote(s string) string {
	s = strings.ReplaceAll(s, "%", "%%")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
