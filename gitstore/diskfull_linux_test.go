package gitstore

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// smallDisk mounts a small file system for this test.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("satchel-test", dir, "tmpfs", 0, options); err != nil {
		testenv.SkipOrFail(t, "a small file system cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill fills the disk up to the given number of free pages. empty makes room again.
func fill(t *testing.T, disk string, pages int64) (empty func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Statfs(disk, &st); err != nil {
		t.Fatal(err)
	}
	if n := (int64(st.Bavail) - pages) * st.Bsize; n > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != nil {
			t.Fatal(err)
		}
	}
	return func() { remove(t, name) }
}

// filesOf lists everything below a directory, so that tests find leftovers.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			fmt.Fprintln(&b, strings.TrimPrefix(p, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDiskFull fills the disk at every page (every fourth, outside of "just soak") of every
// kind of write. The error must say so, the space must be unchanged with nothing left over, and
// everything must work when there is room again.
func TestDiskFull(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	source := t.TempDir()
	git(t, source, "init", "-q", "-b", "main")
	for i := range 3 {
		overwrite(t, filepath.Join(source, fmt.Sprint("f", i)), noise(r, 9000))
		git(t, source, "add", "-A")
		git(t, source, "commit", "-q", "-m", "x")
	}
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	for i := range 3 {
		data := noise(r, 9000)
		if err := tw.WriteHeader(&tar.Header{Name: fmt.Sprint("tar/", i), Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		tw.Write([]byte(data))
	}
	tw.Close()
	remote := transport.Endpoint{URL: source, Trusted: true}
	ways := map[string]func(t *testing.T, s *Store, id space.SpaceID) error{
		"Commit": func(t *testing.T, s *Store, id space.SpaceID) error {
			_, err := s.Commit(t.Context(), id, writes(map[string]string{"new": noise(r, 9000), "d/e/f": "x"}), space.Meta{Author: ada})
			return err
		},
		"Create": func(t *testing.T, s *Store, _ space.SpaceID) error {
			_, err := s.Create(t.Context(), space.NewSpaceID(), writes(map[string]string{"new": noise(r, 9000)}), space.Meta{Author: ada})
			return err
		},
		"Restore": func(t *testing.T, s *Store, id space.SpaceID) error {
			_, err := s.Restore(t.Context(), id, "", named(t, s, id, "Start the space"), space.Meta{Author: ada})
			return err
		},
		"Import of files": func(t *testing.T, s *Store, id space.SpaceID) error {
			_, err := s.Import(t.Context(), id, FromTar(bytes.NewReader(archive.Bytes())), space.Meta{Author: ada}, nil)
			return err
		},
		"Import of a repository": func(t *testing.T, s *Store, id space.SpaceID) error {
			_, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, source)), space.Meta{Author: ada}, nil)
			return err
		},
		"Fetch and Integrate": func(t *testing.T, s *Store, id space.SpaceID) error {
			got, err := s.Fetch(t.Context(), id, remote, "main", nil)
			if err != nil {
				return err
			}
			_, err = s.Integrate(t.Context(), id, got.Tip, space.Meta{Author: ada})
			return err
		},
		"Purge": func(t *testing.T, s *Store, id space.SpaceID) error {
			_, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada})
			return err
		},
		"Maintain": func(t *testing.T, s *Store, id space.SpaceID) error { return s.Maintain(t.Context(), id) },
		"Seed":     func(t *testing.T, s *Store, id space.SpaceID) error { return s.Warm(t.Context(), id) },
	}
	for name, do := range ways {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t, "size=4m")
			client := transport.New(transport.Options{})
			defer client.Close()
			s := newStore(t, func(o *Options) { o.Dir = filepath.Join(disk, "data"); o.Transport = client })
			full := 0
			for pages := int64(0); ; pages += int64(testenv.Stride(4)) {
				if pages > 200 {
					t.Fatal("it never works")
				}
				id := newSpace(t, s, map[string]string{"a": "a"})
				commit(t, s, id, writes(map[string]string{"b": noise(r, 5000), "k": secret}))
				head, _ := s.Head(t.Context(), id)
				before := filesOf(t, s.repoDir(id))
				empty := fill(t, disk, pages)
				err := do(t, s, id)
				now, _ := s.Head(t.Context(), id)
				if err != nil {
					full++
					var sent *transport.Error
					said := fault.CodeOf(err) == fault.Unavailable || errors.As(err, &sent) && (sent.Problem == transport.DiskFull ||
						sent.Problem == transport.Unknown && strings.Contains(err.Error(), "couldn't write")) // git gives no reason
					if !said || strings.Contains(fault.PublicOf(err), disk) {
						t.Errorf("%d pages: %v", pages, err)
					}
					moved := name == "Purge" && strings.Contains(fault.PublicOf(err), "rewritten")
					if now != head && !moved {
						t.Errorf("%d pages: the head moved after %v", pages, err)
					}
					// A successful fetch keeps its objects for the next try.
					if after := filesOf(t, s.repoDir(id)); after != before && !moved && name != "Fetch and Integrate" && name != "Maintain" {
						t.Errorf("%d pages: left over after %v:\n%s\nbefore:\n%s", pages, err, after, before)
					}
				}
				if left := filesOf(t, filepath.Join(s.o.Dir, quarantineDir)); left != "\n" {
					t.Errorf("%d pages: left in quarantine: %s", pages, left)
				}
				empty()
				fsck(t, s, id)
				if err != nil {
					if err := do(t, s, id); err != nil {
						t.Errorf("%d pages: with room again: %v", pages, err)
					}
				}
				commit(t, s, id, writes(map[string]string{"after": "x"}))
				if h := git(t, s.repoDir(id), "rev-parse", "main"); func() bool { g, _ := s.Head(t.Context(), id); return string(g) != h }() {
					t.Errorf("%d pages: the branch's file says %s", pages, h)
				}
				reopened(t, s, id)
				fsck(t, s, id)
				if rerr := s.Remove(t.Context(), id); rerr != nil {
					t.Fatal(rerr)
				}
				if err == nil {
					break
				}
			}
			if full == 0 {
				t.Error("the disk was never full: the test shows nothing")
			}
		})
	}
}

// TestNoInodesLeft checks that a disk without free inodes counts as full.
func TestNoInodesLeft(t *testing.T) {
	disk := smallDisk(t, "size=4m,nr_inodes=200")
	s := newStore(t, func(o *Options) { o.Dir = filepath.Join(disk, "data") })
	id := newSpace(t, s, map[string]string{"a": "a"})
	n := 0
	for ; ; n++ {
		f, err := os.Create(filepath.Join(disk, fmt.Sprint("filler", n)))
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for free := range 8 {
		_, err := s.Commit(t.Context(), id, writes(map[string]string{fmt.Sprint("new", free): "x"}), space.Meta{Author: ada})
		if err != nil && fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("with %d files free: %v", free, err)
		}
		n--
		remove(t, filepath.Join(disk, fmt.Sprint("filler", n)))
	}
	reopened(t, s, id) // the existing content can be read even on a full disk
	for n > 0 {
		n--
		remove(t, filepath.Join(disk, fmt.Sprint("filler", n)))
	}
	commit(t, s, id, writes(map[string]string{"after": "x"}))
	if got := git(t, s.repoDir(id), "rev-parse", "main"); got != string(func() space.CommitID { h, _ := s.Head(t.Context(), id); return h }()) {
		t.Errorf("the branch's file says %s", got)
	}
	fsck(t, s, id)
	reopened(t, s, id)
}
