package oci

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// Hostname is the host name inside every sandbox.
const Hostname = "satchel"

// ociVersion is the version of the runtime specification that Config follows.
const ociVersion = "1.2.1"

// Bind is a host file or directory that a sandbox sees, read-only.
type Bind struct {
	Source string // absolute host path
	Target string // absolute path inside
}

// Spec is the input of Config. Every path is absolute.
type Spec struct {
	// ID is the container's id: exactly 64 hexadecimal digits.
	ID space.SandboxID
	// Root is a directory in which a Layout was created. It is mounted read-only.
	Root string
	// Binds are the parts of the host that complete Root, unless the runtime has put them
	// there itself.
	Binds []Bind
	// Args is the command line of process 1; empty means the agent's.
	Args []string
	// Lower, Git and Library are the directories in which the runtime attaches the three
	// directories of a space.Checkout, each under the name protocol.Attached, while the
	// sandbox runs.
	Lower, Git, Library string
}

// Config returns the configuration of a sandbox. An error means that the Spec is
// invalid.
func Config(s Spec) (*specs.Spec, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	args := s.Args
	if len(args) == 0 {
		args = []string{protocol.Exe}
	}
	caps := slices.Clone(protocol.Capabilities)
	out := &specs.Spec{
		Version: ociVersion,
		Process: &specs.Process{
			Args: args,
			Cwd:  "/",
			// The environment is empty, because the agent sets the environment of each
			// command.
			Env:  []string{},
			User: specs.User{UID: 0, GID: 0},
			Capabilities: &specs.LinuxCapabilities{
				Bounding:  caps,
				Effective: caps,
				Permitted: caps,
			},
			NoNewPrivileges: true,
		},
		Root:     &specs.Root{Path: s.Root, Readonly: true},
		Hostname: Hostname,
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=64k"}},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace},
				{Type: specs.NetworkNamespace},
				{Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace},
				{Type: specs.MountNamespace},
			},
		},
		Annotations: map[string]string{},
	}
	for _, b := range s.Binds {
		out.Mounts = append(out.Mounts, bind(b.Source, b.Target, "nosuid", "nodev"))
	}
	out.Mounts = append(out.Mounts, bind(s.Lower, path.Dir(protocol.Lower), "nosuid", "nodev"))
	for _, m := range []struct{ name, source, target string }{
		{"git", s.Git, path.Dir(protocol.Git)},
		{"library", s.Library, path.Dir(protocol.Library)},
	} {
		out.Mounts = append(out.Mounts, bind(m.source, m.target, "nosuid", "nodev", "noexec"))
		// The host changes these mounts while the sandbox runs, so gVisor must check the host at
		// every access. The share type "container" would put an overlay on top, which hides later
		// changes.
		p := "dev.gvisor.spec.mount." + m.name + "."
		out.Annotations[p+"source"] = m.source
		out.Annotations[p+"type"] = "bind"
		out.Annotations[p+"share"] = "shared"
	}
	return out, nil
}

func bind(source, target string, options ...string) specs.Mount {
	return specs.Mount{
		Destination: target,
		Type:        "bind",
		Source:      source,
		Options:     append([]string{"rbind", "ro"}, options...),
	}
}

// NewID returns an id that no other sandbox has.
func NewID() space.SandboxID {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return space.SandboxID(hex.EncodeToString(b[:]))
}

// ValidID reports whether id is 64 lower-case hexadecimal digits. A shorter id could be a
// prefix of another, so gVisor's own tools would find the wrong container.
func ValidID(id space.SandboxID) bool {
	if len(id) != 64 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

func (s Spec) check() error {
	if !ValidID(s.ID) {
		return fmt.Errorf("oci: sandbox id %q is not 64 hexadecimal digits", s.ID)
	}
	need := map[string]string{"root": s.Root, "lower": s.Lower, "git": s.Git, "library": s.Library}
	for _, b := range s.Binds {
		need["source of "+b.Target] = b.Source
		need["target of "+b.Source] = b.Target
	}
	for what, p := range need {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p {
			return fmt.Errorf("oci: %s is not a clean absolute path: %q", what, p)
		}
	}
	// gVisor finds a mount's annotations by its source, so two mounts of one source would
	// share their annotations.
	if s.Git == s.Library || s.Git == s.Lower || s.Library == s.Lower {
		return fmt.Errorf("oci: lower, git and library must be different directories")
	}
	return nil
}
