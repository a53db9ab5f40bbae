package pending_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

const (
	user  space.UserID  = "u_one"
	other space.UserID  = "u_two"
	id    space.SpaceID = "s_one"
	apart space.SpaceID = "s_two"
)

func load(t testing.TB, key string) *seal.Box {
	t.Helper()
	b, err := seal.Load(key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// open returns a Store of 1,000 bytes and 5 files for each user, and its
// directory.
func open(t testing.TB) (*pending.Store, string) {
	t.Helper()
	dir := t.TempDir()
	return reopen(t, dir, load(t, filepath.Join(dir, "key"))), filepath.Join(dir, "held")
}

func reopen(t testing.TB, dir string, key *seal.Box) *pending.Store {
	t.Helper()
	s, err := pending.Open(pending.Options{
		Dir: filepath.Join(dir, "held"), Seal: key, MaxBytes: 20_000, MaxFiles: 5,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func file(p, content string) pending.File {
	return pending.File{Path: p, Content: []byte(content), Why: "It holds a secret.", Code: fault.Forbidden}
}

func save(t testing.TB, s *pending.Store, u space.UserID, id space.SpaceID, put []pending.File, drop ...string) []pending.NotStored {
	t.Helper()
	unkept, err := s.Save(t.Context(), u, id, put, drop)
	if err != nil {
		t.Fatal(err)
	}
	return unkept
}

// want checks what is held, as "path=content" or "path!reason".
func want(t testing.TB, s *pending.Store, u space.UserID, id space.SpaceID, want ...string) {
	t.Helper()
	files, err := s.Load(t.Context(), u, id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		if f.Lost != "" {
			got = append(got, f.Path+"!"+f.Lost)
		} else {
			got = append(got, f.Path+"="+string(f.Content))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("held are %.200q, want %.200q", got, want)
	}
	items, err := s.List(t.Context(), u, id)
	if err != nil || len(items) != len(files) {
		t.Fatalf("listed are %v, %v", items, err)
	}
	for i, f := range files {
		if items[i].Path != f.Path || f.Lost == "" && items[i].Size != int64(len(f.Content)) || items[i].Since.IsZero() {
			t.Errorf("listed is %+v, held is %+v", items[i], f)
		}
	}
}

// tree lists the files under a directory.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestWhatIsKeptComesBackWhole(t *testing.T) {
	s, dir := open(t)
	want(t, s, user, id)
	large := strings.Repeat("large ", 2000)
	full := pending.File{
		Path: "bad\nname/\xff", Mode: space.Executable, Content: []byte(large), Base: "0123", BaseMode: space.Symlink,
		Why: "No.", Code: fault.TooLarge, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	save(t, s, user, id, []pending.File{full, file("b", "b"), {Path: "fifo", Lost: "it is a FIFO"}})
	again := reopen(t, filepath.Dir(dir), load(t, filepath.Join(filepath.Dir(dir), "key")))
	want(t, again, user, id, "b=b", "bad\nname/\xff="+large, "fifo!it is a FIFO")
	files, err := again.Load(t.Context(), user, id)
	if err != nil {
		t.Fatal(err)
	}
	if got := files[1]; !bytes.Equal(got.Content, full.Content) || got.Mode != full.Mode || got.Base != full.Base ||
		got.BaseMode != full.BaseMode || got.Why != full.Why || got.Code != full.Code || !got.Since.Equal(full.Since) {
		t.Errorf("%+v", got)
	}
	// Replaced, it keeps the time since when it is held.
	save(t, again, user, id, []pending.File{file("bad\nname/\xff", "small")}, "b", "never held")
	want(t, again, user, id, "bad\nname/\xff=small", "fifo!it is a FIFO")
	if items, _ := again.List(t.Context(), user, id); !items[0].Since.Equal(full.Since) {
		t.Errorf("held since %v", items[0].Since)
	}
	if names := tree(t, dir); len(names) != 1 {
		t.Errorf("what is no longer held is still on disk: %q", names)
	}
	save(t, again, user, id, nil, "bad\nname/\xff", "fifo")
	want(t, again, user, id)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left on disk: %v, %v", entries, err)
	}
}

func TestNothingOnDiskCanBeRead(t *testing.T) {
	s, dir := open(t)
	save(t, s, user, id, []pending.File{file("name-of-a-file", "canary-one"), file("b", strings.Repeat("canary-two", 1000))})
	for _, name := range tree(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("canary")) || bytes.Contains(b, []byte("name-of-a-file")) || strings.Contains(name, "name-of-a-file") {
			t.Errorf("%s holds what it should hide", name)
		}
		st, err := os.Stat(name)
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

func TestBoundsAreAUsersAndNothingKeptGivesWay(t *testing.T) {
	s, _ := open(t)
	x := func(n int) string { return strings.Repeat("x", n) }
	save(t, s, user, id, []pending.File{file("a", x(9000)), file("b", "b")})
	unkept := save(t, s, user, apart, []pending.File{file("c", x(12_000)), file("d", "d")})
	if len(unkept) != 1 || unkept[0].Path != "c" || unkept[0].Older ||
		unkept[0].Why != "it has 11.8 kB, and 8.8 kB of the 19.6 kB that may be held for you are taken" {
		t.Errorf("%+v", unkept)
	}
	want(t, s, user, id, "a="+x(9000), "b=b")
	want(t, s, user, apart, "d=d")
	// Another user has bounds of their own.
	if unkept := save(t, s, other, id, []pending.File{file("c", x(12_000))}); len(unkept) != 0 {
		t.Errorf("%+v", unkept)
	}
	// A file that becomes too large keeps its former version.
	unkept = save(t, s, user, id, []pending.File{file("b", x(12_000))})
	if len(unkept) != 1 || !unkept[0].Older {
		t.Errorf("%+v", unkept)
	}
	want(t, s, user, id, "a="+x(9000), "b=b")
	// Files that are replaced or dropped in the same call make room.
	if unkept = save(t, s, user, id, []pending.File{file("b", x(12_000))}, "a"); len(unkept) != 0 {
		t.Errorf("%+v", unkept)
	}
	if unkept = save(t, s, user, id, []pending.File{file("b", x(13_000))}); len(unkept) != 0 {
		t.Errorf("%+v", unkept)
	}
	// The number of files is limited too, including empty ones and those with only a name.
	unkept = save(t, s, user, id, []pending.File{file("1", ""), file("2", ""), {Path: "3", Lost: "it is a FIFO"}, file("4", ""), file("b", "small")})
	if len(unkept) != 1 || unkept[0].Path != "4" || unkept[0].Why != "5 files are held for you already, the most that is allowed" {
		t.Errorf("%+v", unkept)
	}
	want(t, s, user, id, "1=", "2=", "3!it is a FIFO", "b=small")
}

func TestDropping(t *testing.T) {
	s, dir := open(t)
	fill := func() {
		save(t, s, user, id, []pending.File{file("a", "1"), file("a/b", "2"), file("a/c/d", "3"), file("ab", "4")})
		save(t, s, user, apart, []pending.File{file("a", "1")})
		save(t, s, other, id, []pending.File{file("a", "1")})
	}
	fill()
	for path, n := range map[string]int{"a/c": 1, "nothing": 0, "": 0, "b": 0} {
		if got, err := s.Drop(t.Context(), user, id, path); got != n || err != nil {
			t.Errorf("%q: %d, %v", path, got, err)
		}
	}
	if got, err := s.Drop(t.Context(), user, id, "a"); got != 2 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	want(t, s, user, id, "ab=4")
	want(t, s, user, apart, "a=1")
	want(t, s, other, id, "a=1")

	fill()
	if err := s.DropMember(t.Context(), user, id); err != nil {
		t.Fatal(err)
	}
	want(t, s, user, id)
	want(t, s, user, apart, "a=1")
	fill()
	if err := s.DropSpace(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	want(t, s, user, id)
	want(t, s, other, id)
	want(t, s, user, apart, "a=1")
	fill()
	if err := s.DropUser(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	want(t, s, user, apart)
	want(t, s, other, id, "a=1")
	if entries, err := os.ReadDir(filepath.Join(dir, string(user))); err == nil {
		t.Errorf("left on disk: %v", entries)
	}
}

// TestAttackOfAnIDThatIsAPath: an id reaches the file system only where it is
// a plain name.
func TestAttackOfAnIDThatIsAPath(t *testing.T) {
	s, dir := open(t)
	for _, bad := range []string{"", ".", "..", "../x", "a/b", "/tmp/x", "a\x00b", "a.b", strings.Repeat("a", 200)} {
		_, err1 := s.Save(t.Context(), space.UserID(bad), id, []pending.File{file("a", "a")}, nil)
		_, err2 := s.Save(t.Context(), user, space.SpaceID(bad), []pending.File{file("a", "a")}, nil)
		_, err3 := s.Load(t.Context(), space.UserID(bad), id)
		_, err4 := s.Drop(t.Context(), user, space.SpaceID(bad), "a")
		_, err5 := s.List(t.Context(), user, space.SpaceID(bad))
		for _, err := range []error{err1, err2, err3, err4, err5, s.DropUser(t.Context(), space.UserID(bad)), s.DropMember(t.Context(), user, space.SpaceID(bad))} {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
	if names := tree(t, filepath.Dir(dir)); len(names) != 1 { // the key
		t.Errorf("%q", names)
	}
}

// TestAttackOfSwappedFiles: what was sealed for one user, space or file opens
// for no other.
func TestAttackOfSwappedFiles(t *testing.T) {
	for name, to := range map[string]struct {
		u  space.UserID
		id space.SpaceID
	}{"another user": {other, id}, "another space": {user, apart}} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t)
			save(t, s, user, id, []pending.File{file("secret", "mine")})
			if err := os.MkdirAll(filepath.Join(dir, string(to.u)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, string(user), string(id)), filepath.Join(dir, string(to.u), string(to.id))); err != nil {
				t.Fatal(err)
			}
			if files, err := s.Load(t.Context(), to.u, to.id); fault.CodeOf(err) != fault.Invalid || len(files) != 0 {
				t.Errorf("%v, %v", files, err)
			}
		})
	}
	t.Run("another file", func(t *testing.T) {
		s, dir := open(t)
		save(t, s, user, id, []pending.File{file("a", strings.Repeat("a", 5000)), file("b", strings.Repeat("b", 5000)), file("c", "c")})
		blobs, err := filepath.Glob(filepath.Join(dir, string(user), string(id), "*.blob"))
		if err != nil || len(blobs) != 2 {
			t.Fatal(blobs, err)
		}
		for _, swap := range [][2]string{{blobs[0], dir + "/x"}, {blobs[1], blobs[0]}, {dir + "/x", blobs[1]}} {
			if err := os.Rename(swap[0], swap[1]); err != nil {
				t.Fatal(err)
			}
		}
		const lost = "what the server kept of it was damaged"
		want(t, s, user, id, "a!"+lost, "b!"+lost, "c=c")
	})
}

// TestAttackOfATamperedFile: a changed byte anywhere is never content, and what
// cannot be read is set aside and not overwritten.
func TestAttackOfATamperedFile(t *testing.T) {
	for _, damage := range []struct {
		name string
		do   func(b []byte) []byte
	}{
		{"a byte of the form", func(b []byte) []byte { b[0] ^= 1; return b }},
		{"a byte inside", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		{"cut short", func(b []byte) []byte { return b[:len(b)-1] }},
		{"emptied", func([]byte) []byte { return nil }},
	} {
		t.Run(damage.name, func(t *testing.T) {
			s, dir := open(t)
			save(t, s, user, id, []pending.File{file("secret", "mine")})
			index := filepath.Join(dir, string(user), string(id), "index")
			b, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			bad := damage.do(b)
			if err := os.WriteFile(index, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if files, err := s.Load(t.Context(), user, id); fault.CodeOf(err) != fault.Invalid || len(files) != 0 {
				t.Errorf("%v, %v", files, err)
			}
			save(t, s, user, id, nil, "secret")
			save(t, s, user, id, []pending.File{file("new", "new")})
			want(t, s, user, id, "new=new")
			aside, err := filepath.Glob(filepath.Join(dir, string(user), "*.unreadable", "index"))
			if err != nil || len(aside) != 1 {
				t.Fatal(aside, err)
			}
			if got, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(got, bad) {
				t.Errorf("set aside: %q, %v", got, err)
			}
			if err := s.DropMember(t.Context(), user, id); err != nil {
				t.Error(err)
			}
			if names := tree(t, dir); len(names) != 0 {
				t.Errorf("left on disk: %q", names)
			}
		})
	}
}

func TestAnotherKeyOpensNothing(t *testing.T) {
	s, dir := open(t)
	save(t, s, user, id, []pending.File{file("secret", "mine")})
	stranger := reopen(t, filepath.Dir(dir), load(t, filepath.Join(t.TempDir(), "key")))
	if files, err := stranger.Load(t.Context(), user, id); fault.CodeOf(err) != fault.Invalid || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
	want(t, s, user, id, "secret=mine")
}

func TestADiskThatTakesNothingLeavesTheOldState(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere; what a killed process leaves is tested as well")
	}
	s, dir := open(t)
	save(t, s, user, id, []pending.File{file("a", "a")})
	place := filepath.Join(dir, string(user), string(id))
	if err := os.Chmod(place, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(place, 0o700) })
	if _, err := s.Save(t.Context(), user, id, []pending.File{file("b", strings.Repeat("b", 5000))}, []string{"a"}); err == nil {
		t.Error("it was saved")
	}
	want(t, s, user, id, "a=a")
}

func TestManyAtOnce(t *testing.T) {
	s, _ := open(t)
	done := make(chan error)
	for n := range 20 {
		go func() {
			u, p := []space.UserID{user, other}[n%2], fmt.Sprintf("f%d", n/4)
			_, err := s.Save(t.Context(), u, id, []pending.File{file(p, strings.Repeat("x", 100*n))}, nil)
			if err == nil {
				_, err = s.Load(t.Context(), u, id)
			}
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, u := range []space.UserID{user, other} {
		if items, err := s.List(t.Context(), u, id); err != nil || len(items) != 5 {
			t.Errorf("%s: %v, %v", u, items, err)
		}
	}
}
