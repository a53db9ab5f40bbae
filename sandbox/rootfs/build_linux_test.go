package rootfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// programDir is a directory with programs that take the place of Debian's.
func programDir(t *testing.T, programs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A small tree in the place of what debootstrap installs, with one of each that
// has to go.
const smallDebian = `set -e
echo "I: Retrieving base 1"; echo "I: Unpacking base"
[ "$SOURCE_DATE_EPOCH" = 1700000000 ]
for d; do case $d in /*.building-*) dir=$d ;; esac; done
cd "$dir"
mkdir -p usr/bin usr/share/doc/git usr/share/man/man1 usr/lib/locale/{C.utf8,de_DE} var/cache/apt var/lib/dpkg etc dev
echo '#!' > usr/bin/bash; cp usr/bin/bash usr/bin/su; chmod 6755 usr/bin/su; ln -s bash usr/bin/sh; ln -s /etc/passwd usr/bin/away
echo c > usr/share/doc/git/copyright; echo x > usr/share/doc/git/changelog; echo m > usr/share/man/man1/ls.1
echo l > usr/lib/locale/C.utf8/x; echo l > usr/lib/locale/de_DE/x; echo d > var/cache/apt/d; mkfifo usr/bin/fifo; echo id > etc/machine-id
printf 'Package: git\nStatus: install ok installed\nVersion: 1:2\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 3\n\nPackage: bash\nStatus: install ok installed\nVersion: 5\n' > var/lib/dpkg/status
touch -d 2001-01-01 usr/bin/bash; [ "$(id -u)" != 0 ] || mknod dev/null c 1 3
`

// options build with a debootstrap of the test's own.
func options(t *testing.T, debootstrap string) Options {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.SkipOrFail(t, "debootstrap needs root")
	}
	// And no mmdebstrap, which would come first.
	t.Setenv("PATH", programDir(t, map[string]string{"debootstrap": debootstrap}))
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{
		Dir: filepath.Join(t.TempDir(), "root"), Mirror: "http://mirror.example/debian", AptDir: t.TempDir(), Keyring: key,
		Epoch: time.Unix(1_700_000_000, 0), Environ: os.Environ(),
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestBuild(t *testing.T) {
	o := options(t, smallDebian)
	var said []string
	o.Progress = func(l string, detail bool) {
		if !detail {
			said = append(said, l)
		}
	}
	o.Check = func(dir string) ([]string, error) {
		if _, err := os.Stat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it is in place before it was checked")
		}
		return []string{"checked"}, nil
	}
	r, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"usr/bin/away", "usr/bin/bash", "usr/bin/sh", "usr/bin/su", "usr/lib/locale/C.utf8/x", "usr/share/doc/git/copyright", "var/lib/dpkg/status",
	}
	if got := names(t, o.Dir); !slices.Equal(got, want) {
		t.Errorf("it holds %q", got)
	}
	if fi, err := os.Stat(filepath.Join(o.Dir, "usr/bin/su")); err != nil || fi.Mode() != 0o755 || fi.ModTime().Unix() != 1_700_000_000 {
		t.Errorf("su has the mode %v and the time %v, %v", fi.Mode(), fi.ModTime(), err)
	}
	if fi, err := os.Stat(filepath.Join(o.Dir, "usr/bin/bash")); err != nil || fi.ModTime().Year() > 2001 {
		t.Errorf("a time before the epoch was changed: %v, %v", fi.ModTime(), err)
	}
	if fi, err := os.Stat(o.Dir); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if !slices.Equal(r.Packages, []Package{{"bash", "5"}, {"git", "1:2"}}) || r.Size >= r.Unpacked || r.Files != 5 || r.Kept != "" ||
		!slices.Equal(r.Found, []string{"checked"}) || r.Security || r.Tool != "debootstrap" {
		t.Errorf("%+v", r)
	}
	if len(said) != 5 || said[1] != "Fetching packages" || said[2] != "Installing packages" {
		t.Errorf("progress %q", said)
	}

	// Again: refused, then replaced by the very same.
	if _, err := Build(t.Context(), o); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("%v", err)
	}
	o.Replace, o.Check = true, nil
	for range 2 { // the second time there is a DIR.old
		again, err := Build(t.Context(), o)
		if err != nil || again.Kept != o.Dir+".old" || again.Digest != r.Digest {
			t.Fatalf("%+v, %v", again, err)
		}
	}
	if got := names(t, o.Dir+".old"); !slices.Equal(got, want) {
		t.Errorf("the old one holds %q", got)
	}
	nothingElse(t, o, "root", "root.old")
}

// nothingElse checks what is in the directory of a root file system.
func nothingElse(t *testing.T, o Options, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(o.Dir))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

// TestFailuresLeaveNothing: neither half a root file system nor a process nor a
// mount, and what was there is as it was.
func TestFailuresLeaveNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		check  error
		want   string
	}{
		"the program fails":    {smallDebian + "echo 'E: no such package: rgrep' >&2; exit 1", nil, "E: no such package: rgrep"},
		"half of it is there":  {"mkdir -p \"${@: -2:1}/usr\"; exit 3", nil, "failed"},
		"the check fails":      {smallDebian, fault.New(fault.Unavailable, "jq is missing"), "jq is missing"},
		"it mounts something":  {smallDebian + "mount -t tmpfs none \"$dir/etc\"; touch \"$dir/etc/mounted\"; exit 1", nil, "failed"},
		"it installed nothing": {"true", nil, "installed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, tt.script)
			o.Check = func(string) ([]string, error) { return nil, tt.check }
			if _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
			nothingElse(t, o)
			rootIn(t, o.Dir)
			o.Replace = true
			if _, err := Build(t.Context(), o); err == nil {
				t.Error("it was built")
			}
			nothingElse(t, o, "root")
			if got := names(t, o.Dir); !slices.Equal(got, []string{"usr/bin/bash"}) {
				t.Errorf("the old one holds %q", got)
			}
		})
	}
}

// TestInterrupted: a build that is stopped leaves nothing, although the program
// would go on for ever.
func TestInterrupted(t *testing.T) {
	o := options(t, "echo 'I: Retrieving x'; trap '' TERM; (trap '' TERM; sleep 1000) & sleep 1000; wait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(l string, _ bool) {
		if l == "Fetching packages" {
			cancel()
		}
	}
	o.KillTime = 100 * time.Millisecond
	if _, err := Build(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	nothingElse(t, o)
}

func TestRefusesWhatIsNoRootFileSystem(t *testing.T) {
	o := options(t, "echo must not run >&2; exit 1")
	for name, make := range map[string]func() error{
		"a file":               func() error { return os.WriteFile(o.Dir, []byte("mine"), 0o644) },
		"a link":               func() error { return os.Symlink(t.TempDir(), o.Dir) },
		"a person's own files": func() error { return errors.Join(os.Mkdir(o.Dir, 0o755), os.WriteFile(o.Dir+"/thesis", nil, 0o644)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := make(); err != nil {
				t.Fatal(err)
			}
			for _, o.Replace = range []bool{false, true} {
				_, err := Build(t.Context(), o)
				// No remedy that would be refused.
				if fault.CodeOf(err) != fault.Conflict || strings.Contains(err.Error(), "--replace") {
					t.Errorf("replace %v: %v", o.Replace, err)
				}
			}
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestNothingButARootFileSystemIsRemoved: DIR.old, where what is replaced is
// kept, may be someone's own.
func TestNothingButARootFileSystemIsRemoved(t *testing.T) {
	thesis := t.TempDir()
	if err := os.WriteFile(thesis+"/thesis", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(old string) error{
		"a file":                   func(old string) error { return os.WriteFile(old, []byte("mine"), 0o644) },
		"a link":                   func(old string) error { return os.Symlink(thesis, old) },
		"a link to nothing":        func(old string) error { return os.Symlink("/no/such", old) },
		"a person's own directory": func(old string) error { return os.CopyFS(old, os.DirFS(thesis)) },
	} {
		for when, script := range map[string]string{
			"before the build": "echo must not run >&2; exit 1", "during the build": smallDebian + "mv ${dir%/*}/later ${dir%/*}/root.old",
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				o := options(t, script)
				o.Replace = true
				rootIn(t, o.Dir)
				at := o.Dir + ".old"
				if when == "during the build" {
					at = filepath.Join(filepath.Dir(o.Dir), "later")
				}
				if err := make(at); err != nil {
					t.Fatal(err)
				}
				before := names(t, filepath.Dir(o.Dir))
				_, err := Build(t.Context(), o)
				if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), o.Dir+".old is no root file system") {
					t.Errorf("%v", err)
				}
				if after := names(t, filepath.Dir(o.Dir)); len(after) != len(before) {
					t.Errorf("there were %q, now there are %q", before, after)
				}
				if got := names(t, thesis); !slices.Equal(got, []string{"thesis"}) {
					t.Errorf("what the link leads to holds %q", got)
				}
			})
		}
	}
}

// rootIn makes what passes for a root file system.
func rootIn(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "usr/bin/bash"), []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestMissingPrograms: the words name what to install.
func TestMissingPrograms(t *testing.T) {
	o := options(t, "")
	t.Setenv("PATH", t.TempDir())
	if _, err := Build(t.Context(), o); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "apt-get install mmdebstrap") {
		t.Errorf("%v", err)
	}
}

// TestNothingUnverified: without Debian's keys nothing is fetched.
func TestNothingUnverified(t *testing.T) {
	o := options(t, smallDebian)
	o.Keyring += ".gone"
	if _, err := Build(t.Context(), o); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "apt-get install debian-archive-keyring") {
		t.Errorf("%v", err)
	}
	nothingElse(t, o)
}

// TestUnpack: a tar becomes files of ours alone, and nothing leaves the
// directory, whatever is in it.
func TestUnpack(t *testing.T) {
	type entry struct {
		kind          byte
		name, content string
		mode          int64
	}
	write := func(entries ...entry) *bytes.Reader {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: e.mode, ModTime: time.Unix(1, 0), Uid: 5}
			if e.kind == tar.TypeReg {
				h.Size = int64(len(e.content))
			} else {
				h.Linkname = e.content
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if e.kind == tar.TypeReg {
				if _, err := w.Write([]byte(e.content)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b.Bytes())
	}
	top := t.TempDir()
	dir := filepath.Join(top, "in")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := unpack(write(
		entry{tar.TypeDir, "./", "", 0o755}, entry{tar.TypeDir, "./closed/", "", 0o555}, entry{tar.TypeReg, "./closed/f", "f\n", 0o4755},
		entry{tar.TypeSymlink, "./l", "/etc", 0o777}, entry{tar.TypeLink, "./h", "./closed/f", 0}, entry{tar.TypeChar, "./null", "", 0o666}, entry{tar.TypeFifo, "./p", "", 0o666},
		entry{tar.TypeReg, "../../beside", "stays inside", 0o644},
	), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, top); !slices.Equal(got, []string{"in/beside", "in/closed/f", "in/h", "in/l"}) {
		t.Errorf("%q", got)
	}
	if fi, err := os.Lstat(filepath.Join(dir, "h")); err != nil || fi.Mode() != 0o755 || fi.ModTime().Unix() != 1 {
		t.Errorf("%v, %v", fi, err)
	}
	for name, entries := range map[string][]entry{
		"attack: a file through a link":         {{tar.TypeSymlink, "out", top, 0}, {tar.TypeReg, "out/x", "x", 0o644}},
		"attack: a file in a link's place":      {{tar.TypeSymlink, "o2", filepath.Join(top, "y"), 0}, {tar.TypeReg, "o2", "x", 0o644}},
		"attack: a hard link to outside":        {{tar.TypeSymlink, "o3", "/etc", 0}, {tar.TypeLink, "p", "o3/passwd", 0}},
		"attack: a directory's mode at outside": {{tar.TypeSymlink, "o4", "..", 0}, {tar.TypeDir, "o4/in/../x", "", 0o777}},
	} {
		t.Run(name, func(t *testing.T) {
			before := names(t, top)
			_ = unpack(write(entries...), dir) // an error, or something inside
			for _, n := range names(t, top) {
				if !slices.Contains(before, n) && !strings.HasPrefix(n, "in/") {
					t.Errorf("it made %s", n)
				}
			}
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(dir, "p"), &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 2 {
				t.Error("it linked a file of the host's")
			}
		})
	}
	if err := unpack(strings.NewReader(strings.Repeat("not a tar", 200)), dir); err == nil {
		t.Error("nonsense was unpacked")
	}
}
