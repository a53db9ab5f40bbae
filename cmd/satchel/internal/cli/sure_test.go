package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/remotetest"
)

// Who sets a remote at a terminal is asked about what may be passwords before anything
// is set; elsewhere, and with --yes, they are warned.
func TestAskedBeforeARemoteIsSet(t *testing.T) {
	home := t.TempDir()
	token := filepath.Join(home, "token")
	notes := filepath.Join(home, "notes")
	for name, text := range map[string]string{token: "canary-token\n", filepath.Join(notes, "wifi.md"): "# Wifi\n\npassword: kT9-vQ2x-Lm4p-Zr7w\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(asked bool, typed string, args ...string) (int, string) {
		var out, said bytes.Buffer
		status := Main(t.Context(), Env{
			Args: args, Environ: []string{"HOME=" + home, "USERPROFILE=" + home, "PATH=" + os.Getenv("PATH"), "SATCHEL_SANDBOX_RUNTIME=none", "SATCHEL_LOG_LEVEL=error"},
			Stdin: strings.NewReader(typed), Stdout: &out, Stderr: &said, Asked: asked,
		})
		return status, said.String()
	}
	for _, args := range [][]string{{"user", "add", "ann"}, {"space", "import", notes, "--user", "ann"}} {
		if status, said := run(false, "", args...); status != 0 {
			t.Fatalf("%v: %s", args, said)
		}
	}
	server := remotetest.New(t, remotetest.Options{Password: "canary-token"})
	set := func(asked bool, typed, name string, more ...string) (int, string) {
		return run(asked, typed, append([]string{"space", "remote", "set", server.URL(name), "--user", "ann", "--token-file", token}, more...)...)
	}
	for i, tt := range []struct {
		name  string
		asked bool
		typed string
		more  []string
		says  string
		asks  bool
		set   bool
	}{
		{"an address that is refused", true, "", nil, "--trusted", false, false},
		{"no", true, "no\n", []string{"--trusted"}, "wifi.md:3", true, false},
		{"the end", true, "", []string{"--trusted"}, "nothing was changed", true, false},
		{"yes", true, "yes\n", []string{"--trusted"}, "wifi.md:3", true, true},
		{"with --yes", true, "", []string{"--trusted", "--yes"}, "wifi.md:3", false, true},
		{"no terminal", false, "", []string{"--trusted"}, "wifi.md:3", false, true},
	} {
		repository := string(rune('a' + i))
		server.Create(repository)
		status, said := set(tt.asked, tt.typed, repository, tt.more...)
		if (status == 0) != tt.set || !strings.Contains(said, tt.says) || strings.Contains(said, "Type yes") != tt.asks || (server.Head(repository, "main") != "") != tt.set {
			t.Errorf("%s: %d, pushed %q: %s", tt.name, status, server.Head(repository, "main"), said)
		}
	}
}
