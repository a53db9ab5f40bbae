package gvisor_test

import (
	"os"
	"path/filepath"
	"strings"

	"satchel/sandbox/gvisor"
)

// viewChecks are about what process 1 and commands see.
var viewChecks = []runtimeCheck{
	{name: "the layout", run: func(e *runtimeExercise) {
		s := e.start(e.runtime(), e.spec())
		for _, c := range []struct{ command, want string }{
			{"id -u", "0"},
			{"user:id -u", "1000"},
			{"user:id -un", "satchel"},
			{"cat /.satchel/lower/attached/note.md", "a note"},
			{"cat /.satchel/git/attached/HEAD", "ref: refs/heads/main"},
			{"user:cat /library/page.md", "a page"},
			{"hostname", "satchel"},
			{"pwd", "/"},
			{"tr '\\0' ' ' < /proc/1/cmdline", "/.satchel/agent stand-in"},
			{"awk 'BEGIN { print 1+1 }'", "2"}, // through /etc/alternatives
			{"ls /.satchel", "agent\ngit\nlibrary\nlower\nupper"},
			{"user:echo x > /dev/null && head -c 3 /dev/zero | wc -c", "3"},
			{"user:head -c 5 /dev/urandom | wc -c", "5"},
			{"echo /proc/[0-9]* | wc -w | awk '{ print $1 < 10 }'", "1"},
		} {
			if got := e.run(s, c.command); got != c.want {
				e.Errorf("%s: got %q, want %q", c.command, got, c.want)
			}
		}
	}},
	{name: "a configured root file system", run: func(e *runtimeExercise) {
		rootfs := e.TempDir()
		for from, to := range map[string]string{"usr": "/usr", "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
			if err := os.Symlink(to, filepath.Join(rootfs, from)); err != nil {
				e.Fatal(err)
			}
		}
		writeFile(e, filepath.Join(rootfs, "secret"), "the operator's own")
		s := e.start(e.runtime(func(o *gvisor.Options) { o.Rootfs = rootfs }), e.spec())
		const want = "/bin/bash ls: cannot access '/secret': No such file or directory 0"
		if got := e.run(s, "echo $(ls /bin/bash) $(ls /secret 2>&1) $(ls /etc | grep -c alternatives)"); got != want {
			e.Errorf("got %q", got)
		}
	}},
	{name: "git view and library follow the host", run: func(e *runtimeExercise) {
		spec := e.spec()
		s := e.start(e.runtime(), spec)
		for _, d := range []struct{ host, inside string }{{spec.Checkout.GitView, "/.satchel/git/attached"}, {spec.Checkout.Library, "/library"}} {
			look := func() string { return e.run(s, "cd "+d.inside+" && for f in *; do echo $f: $(cat $f); done") }
			look() // so that what is there is in every cache
			writeFile(e, d.host+"/a", "one")
			if got := look(); !strings.Contains(got, "a: one") {
				e.Errorf("%s: a new file does not show: %q", d.inside, got)
			}
			writeFile(e, d.host+"/a", "two and more")
			if got := look(); !strings.Contains(got, "a: two and more") {
				e.Errorf("%s: an edit does not show: %q", d.inside, got)
			}
			writeFile(e, d.host+"/new", "three")
			if err := os.Rename(d.host+"/new", d.host+"/a"); err != nil {
				e.Fatal(err)
			}
			if got := look(); !strings.Contains(got, "a: three") || strings.Contains(got, "new:") {
				e.Errorf("%s: a rename over a file does not show: %q", d.inside, got)
			}
			if err := os.Remove(d.host + "/a"); err != nil {
				e.Fatal(err)
			}
			if got := look(); strings.Contains(got, "a:") {
				e.Errorf("%s: a removed file still shows: %q", d.inside, got)
			}
		}
	}},
	{name: "a snapshot of the library is swapped by rename", run: func(e *runtimeExercise) {
		spec := e.spec()
		library := spec.Checkout.Library
		for _, v := range []string{"v1", "v2"} {
			if err := os.MkdirAll(filepath.Join(library, ".snapshots", v), 0o777); err != nil {
				e.Fatal(err)
			}
			writeFile(e, filepath.Join(library, ".snapshots", v, "page"), v)
		}
		link := filepath.Join(library, "docs")
		if err := os.Symlink(".snapshots/v1", link); err != nil {
			e.Fatal(err)
		}
		s := e.start(e.runtime(), spec)
		if got := e.run(s, "cat /library/docs/page"); got != "v1" {
			e.Fatalf("before the swap: %q", got)
		}
		if err := os.Symlink(".snapshots/v2", link+".new"); err != nil {
			e.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			e.Fatal(err)
		}
		if got := e.run(s, "cat /library/docs/page"); got != "v2" {
			e.Errorf("after the swap: %q", got)
		}
	}},
}
