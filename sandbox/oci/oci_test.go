package oci_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox/oci"
	"satchel/sandbox/protocol"
)

var update = flag.Bool("update", false, "write the golden files")

var id = space.SandboxID(strings.Repeat("0123456789abcdef", 4))

func full() oci.Spec {
	return oci.Spec{
		ID: id, Root: "/run/satchel-host/root",
		Lower: "/data/checkouts/s_1/c1", Git: "/data/views/s_1", Library: "/data/libraries/all",
	}
}

func TestConfigGolden(t *testing.T) {
	withBinds := full()
	withBinds.Binds = []oci.Bind{{Source: "/usr", Target: "/usr"}, {Source: "/opt/satchel", Target: protocol.Exe}}
	bare := oci.Spec{ID: id, Root: "/root", Lower: "/lower", Git: "/git", Library: "/library", Args: []string{"/bin/true"}}
	for _, c := range []struct {
		name string
		spec oci.Spec
	}{
		{"full", full()},
		{"binds", withBinds}, // as a runtime that does not assemble the root takes it
		{"bare", bare},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := marshal(t, c.spec)
			golden(t, c.name+".json", append(got, '\n'))
			if !bytes.Equal(marshal(t, c.spec), got) {
				t.Error("the same Spec gives other bytes the second time")
			}
		})
	}
}

func marshal(t *testing.T, s oci.Spec) []byte {
	t.Helper()
	c, err := oci.Config(s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run the test with -update, then look at the change):\n%s", file, got)
	}
}

// What must hold for every sandbox, whatever the golden files say.
func TestConfigGivesNoMoreThanNeeded(t *testing.T) {
	c, err := oci.Config(full())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Process.Env) != 0 {
		t.Errorf("the environment holds %q", c.Process.Env)
	}
	if !c.Root.Readonly || !c.Process.NoNewPrivileges || c.Process.Terminal {
		t.Error("the root is writable, or process 1 can gain rights or has a terminal")
	}
	for name, set := range map[string][]string{
		"bounding": c.Process.Capabilities.Bounding, "effective": c.Process.Capabilities.Effective, "permitted": c.Process.Capabilities.Permitted,
	} {
		if !slices.Equal(set, protocol.Capabilities) {
			t.Errorf("the %s set is %q, want the agent's", name, set)
		}
	}
	if len(c.Process.Capabilities.Inheritable)+len(c.Process.Capabilities.Ambient) != 0 {
		t.Error("commands inherit capabilities")
	}
	for _, m := range c.Mounts {
		if m.Type == "bind" && !(slices.Contains(m.Options, "ro") && slices.Contains(m.Options, "nosuid") && slices.Contains(m.Options, "nodev")) {
			t.Errorf("%s of the host is mounted %q", m.Source, m.Options)
		}
	}
	for k, v := range c.Annotations {
		if strings.HasSuffix(k, ".share") && v != "shared" {
			t.Errorf("%s is %s: the host's changes would not show", k, v)
		}
		if strings.Contains(v, "/checkouts/") {
			t.Errorf("the lower layer is annotated %s", k)
		}
	}
	c.Process.Capabilities.Bounding[0] = "CAP_SYS_MODULE"
	if protocol.Capabilities[0] == "CAP_SYS_MODULE" {
		t.Error("the configuration shares the agent's list")
	}
}

func TestConfigRefusesWhatWouldMountSomethingElse(t *testing.T) {
	for name, change := range map[string]func(*oci.Spec){
		"no id":             func(s *oci.Spec) { s.ID = "" },
		"short id":          func(s *oci.Spec) { s.ID = "user1" },
		"upper-case id":     func(s *oci.Spec) { s.ID = space.SandboxID(strings.ToUpper(string(id))) },
		"path in id":        func(s *oci.Spec) { s.ID = id[:61] + "/.." },
		"no root":           func(s *oci.Spec) { s.Root = "" },
		"relative root":     func(s *oci.Spec) { s.Root = "root" },
		"no lower":          func(s *oci.Spec) { s.Lower = "" },
		"dots in lower":     func(s *oci.Spec) { s.Lower = "/data/../etc" },
		"relative git":      func(s *oci.Spec) { s.Git = "git" },
		"trailing slash":    func(s *oci.Spec) { s.Library += "/" },
		"git is library":    func(s *oci.Spec) { s.Git = s.Library },
		"git is lower":      func(s *oci.Spec) { s.Git = s.Lower },
		"relative bind":     func(s *oci.Spec) { s.Binds = []oci.Bind{{Source: "usr", Target: "/usr"}} },
		"dots in bind":      func(s *oci.Spec) { s.Binds = []oci.Bind{{Source: "/usr", Target: "/usr/.."}} },
		"bind to nowhere":   func(s *oci.Spec) { s.Binds = []oci.Bind{{Source: "/usr"}} },
		"bind from nowhere": func(s *oci.Spec) { s.Binds = []oci.Bind{{Target: "/usr"}} },
	} {
		s := full()
		change(&s)
		if _, err := oci.Config(s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// hostTree makes a host's root: "dir/" a directory, "a -> b" a link, else a file.
func hostTree(t *testing.T, entries ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, e := range entries {
		if from, to, ok := strings.Cut(e, " -> "); ok {
			if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		p := filepath.Join(root, e)
		dir := p
		if !strings.HasSuffix(e, "/") {
			dir = filepath.Dir(p)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir != p {
			if err := os.WriteFile(p, []byte(e), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestHostLayoutGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		host []string
	}{
		{"merged", []string{ // Debian 12, Ubuntu 24.04
			"usr/bin/", "usr/lib/", "bin -> usr/bin", "sbin -> usr/sbin", "lib -> usr/lib", "lib64 -> usr/lib64",
			"etc/alternatives/", "etc/ld.so.cache", "etc/shadow", "etc/ssl/private/", "home/someone/", "root/.ssh/", "var/lib/", "opt/",
		}},
		{"split", []string{"usr/bin/", "bin/", "sbin/", "lib/", "lib64/", "etc/passwd"}}, // Alpine
	} {
		t.Run(c.name, func(t *testing.T) {
			root := hostTree(t, c.host...)
			l, err := oci.HostLayout(root, "/opt/satchel")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "layout-"+c.name+".txt", []byte(strings.ReplaceAll(describe(l), root, "HOST")))
		})
	}
}

func describe(l oci.Layout) string {
	var b strings.Builder
	for _, d := range l.Dirs {
		fmt.Fprintf(&b, "dir   %s\n", d)
	}
	var rest []string
	for from, to := range l.Links {
		rest = append(rest, fmt.Sprintf("link  %s -> %s\n", from, to))
	}
	for name, content := range l.Files {
		rest = append(rest, fmt.Sprintf("file  %s %q\n", name, content))
	}
	slices.Sort(rest)
	b.WriteString(strings.Join(rest, ""))
	for _, m := range l.Binds {
		fmt.Fprintf(&b, "bind  %s <- %s\n", m.Target, m.Source)
	}
	return b.String()
}

func TestLayoutWithoutUsr(t *testing.T) {
	if _, err := oci.HostLayout(hostTree(t, "bin/"), "/opt/satchel"); err == nil {
		t.Error("a host without /usr has a layout")
	}
	if _, err := oci.DirLayout(hostTree(t, "bin/"), "/opt/satchel"); err == nil {
		t.Error("a root file system without /usr has a layout")
	}
}

func TestLayoutCreate(t *testing.T) {
	host := hostTree(t, "usr/bin/", "bin -> usr/bin", "etc/ld.so.cache")
	l, err := oci.HostLayout(host, "/opt/satchel")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // it may be there already
		if err := l.Create(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range l.Binds {
		if _, err := os.Stat(filepath.Join(dir, b.Target)); err != nil {
			t.Errorf("there is nothing to mount %s on: %v", b.Source, err)
		}
	}
	for _, d := range []string{path.Dir(protocol.Lower), path.Dir(protocol.Git), path.Dir(protocol.Library), protocol.Upper, protocol.SpaceDir, protocol.LibraryDir, protocol.RunDir, protocol.TmpDir, "/proc", "/dev"} {
		if fi, err := os.Stat(filepath.Join(dir, d)); err != nil || !fi.IsDir() {
			t.Errorf("the mount point %s is missing: %v", d, err)
		}
	}
	if fi, err := os.Stat(filepath.Join(dir, filepath.Dir(protocol.Exe))); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("what is the agent's is open to commands: %v %v", fi.Mode(), err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "bin")); err != nil || to != "usr/bin" {
		t.Errorf("/bin is %q, %v", to, err)
	}
	passwd, err := os.ReadFile(filepath.Join(dir, "etc/passwd"))
	if err != nil || !strings.Contains(string(passwd), fmt.Sprintf(":%d:%d:", protocol.CommandUID, protocol.CommandUID)) {
		t.Errorf("/etc/passwd: %q, %v", passwd, err)
	}
}

// A root file system in which a directory is a link must not make Create write
// elsewhere.
func TestAttackLinkInRoot(t *testing.T) {
	l, err := oci.HostLayout(hostTree(t, "usr/"), "/opt/satchel")
	if err != nil {
		t.Fatal(err)
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "etc")); err != nil {
		t.Fatal(err)
	}
	if err := l.Create(dir); err == nil {
		t.Error("a planted link was taken for a directory")
	}
	if got, _ := os.ReadDir(elsewhere); len(got) != 0 {
		t.Errorf("files were made elsewhere: %v", got)
	}
}
