package programs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"satchel/internal/fault"
)

// embedded is what scripts/programs makes, of two small scripts.
func embedded(t *testing.T) fstest.MapFS {
	t.Helper()
	fs, list := fstest.MapFS{}, ""
	for _, name := range []string{Sandbox, Agent} {
		program := "#!/bin/sh\necho " + name + "\n"
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		fmt.Fprint(z, program)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		fs["built/"+name+".gz"] = &fstest.MapFile{Data: packed.Bytes()}
		list += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(program)), name)
	}
	list += runtime.GOARCH + "  arch\n"
	fs["built/"+sums] = &fstest.MapFile{Data: []byte(list)}
	return fs
}

func mustInstall(t *testing.T, fs fstest.MapFS, dir string) Programs {
	t.Helper()
	p, err := install(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInstallWritesBothPrograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "programs")
	p := mustInstall(t, embedded(t), dir)
	for name, file := range map[string]string{Sandbox: p.Sandbox, Agent: p.Agent} {
		b, err := os.ReadFile(file)
		fi, err2 := os.Stat(file)
		if err != nil || err2 != nil || !strings.Contains(string(b), name) || fi.Mode().Perm() != 0o755 {
			t.Errorf("%s: %q, %v, %v, %v", name, b, fi, err, err2)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestInstallReplacesOnlyWhatDiffers(t *testing.T) {
	fs, dir := embedded(t), t.TempDir()
	p := mustInstall(t, fs, dir)
	before, err := os.Stat(p.Agent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Sandbox, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, fs, dir)
	if after, err := os.Stat(p.Agent); err != nil || !os.SameFile(before, after) {
		t.Errorf("the agent was written again: %v", err)
	}
	if b, err := os.ReadFile(p.Sandbox); err != nil || !strings.Contains(string(b), Sandbox) {
		t.Errorf("the changed program is still there: %q, %v", b, err)
	}
	if fi, err := os.Stat(p.Sandbox); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestInstallRefusesAProgramThatIsNotTheBuiltOne(t *testing.T) {
	fs, dir := embedded(t), t.TempDir()
	fs["built/"+Agent+".gz"] = fs["built/"+Sandbox+".gz"]
	if p, err := install(fs, dir); err == nil {
		t.Errorf("installed %v", p)
	}
	if _, err := os.Stat(In(dir).Agent); err == nil {
		t.Error("the wrong program is in place")
	}
}

func TestAServerWithoutProgramsSaysWhatToRun(t *testing.T) {
	other := embedded(t)
	list := other["built/"+sums]
	list.Data = bytes.Replace(list.Data, []byte(runtime.GOARCH+"  arch"), []byte("other  arch"), 1)
	for name, fs := range map[string]fstest.MapFS{"none": {"built/README.md": {}}, "of another processor": other} {
		dir := filepath.Join(t.TempDir(), "programs")
		_, err := install(fs, dir)
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "scripts/build") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a directory was made", name)
		}
	}
}
