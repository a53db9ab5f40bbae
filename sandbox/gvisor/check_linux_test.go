package gvisor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/host"
)

func TestCheckWhereItWorks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, withAgent, func(o *gvisor.Options) { o.RunDir = dir })
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := sandboxProcesses(t, dir); len(left) != 0 {
		t.Errorf("the trial is left: %v", left)
	}
}

func TestCheckSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*gvisor.Options)
		want   string
	}{
		{"a program that is linked dynamically", withProgram("/bin/bash"), "CGO_ENABLED=0"},
		{"a program that is not there", withProgram("/no/such/satchel"), "cannot be read"},
		{"a root file system that is not there", func(o *gvisor.Options) { o.Rootfs = "/no/such/rootfs" }, "does not exist"},
		{"process 1 that does not start", func(o *gvisor.Options) { o.Args = []string{"/no/such/agent"} }, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := newRuntime(t, c.change).Check(t.Context())
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a fault.Unavailable that says %q", err, c.want)
			}
			if public := fault.PublicOf(err); strings.Contains(public, "/no/such") || strings.Contains(public, "/tmp") {
				t.Errorf("users see the host's paths: %q", public)
			}
		})
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	findings := newRuntime(t, withAgent).Diagnose(t.Context())
	var names []string
	for _, f := range findings {
		names = append(names, f.Name)
		if f.Detail == "" {
			t.Errorf("%s: there is no explanation", f.Name)
		}
		if needed := !strings.Contains(f.Detail, "not needed"); (f.Remedy == "") != f.OK && needed {
			t.Errorf("%s: OK is %v and the remedy is %q", f.Name, f.OK, f.Remedy)
		}
	}
	for _, want := range []string{"program", "user", "/proc", "namespaces", "platform systrap", "platform kvm", "platform ptrace", "cgroups", "bash", "git", "rg"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not looked at", want)
		}
	}
	i := slices.IndexFunc(findings, func(f host.Finding) bool { return f.Name == "platform systrap" })
	if !findings[i].OK {
		t.Errorf("systrap: %+v", findings[i])
	}
}

// If the configured root file system is missing, only that is reported, because it causes
// the other failures.
func TestAMissingRootFileSystemIsToldFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for rootfs, want := range map[string]string{empty: "the directory that sandbox.rootfs names has no /usr", "/nope": "does not exist", file: "is a file", file + "/below": "cannot be looked at: not a directory"} {
		r, err := gvisor.New(gvisor.Options{RunDir: filepath.Join(t.TempDir(), "run"), Rootfs: rootfs})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if f := r.Diagnose(t.Context()); len(f) != 1 || !strings.Contains(f[0].Detail, want) || !strings.HasPrefix(f[0].Remedy, "Make a root file system as docs/rootfs.md says") {
			t.Errorf("%s: %+v", rootfs, f)
		}
		err = r.Check(t.Context())
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), want) || strings.Contains(fault.PublicOf(err), rootfs) {
			t.Errorf("%s: %v", rootfs, err)
		}
	}
}

func TestNewRefusesWrongOptions(t *testing.T) {
	for name, o := range map[string]gvisor.Options{
		"no run directory":              {},
		"relative run directory":        {RunDir: "run"},
		"relative root file system":     {RunDir: "/run/x", Rootfs: "rootfs"},
		"a platform that there is none": {RunDir: "/run/x", Platform: "xen"},
	} {
		if _, err := gvisor.New(o); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewDoesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r, err := gvisor.New(gvisor.Options{RunDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("New made the run directory")
	}
}
