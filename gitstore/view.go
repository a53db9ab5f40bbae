package gitstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"satchel/gitstore/packfile"
)

// viewConfig is the configuration of a git view. With checkStat and trustctime, git
// compares only the size, the mode and the seconds of the modification time. These are the
// same in a manifest and a checkout. The configuration contains no remote, no credential and
// nothing that runs a program.
const viewConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logAllRefUpdates = false
	symlinks = true
	trustctime = false
	checkStat = minimal
	untrackedCache = false
	fsmonitor = false
	autocrlf = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// gitView is a git directory that sandboxes see read-only as /space/.git. Its packs are
// hard links to the repository's packs, which nobody modifies.
type gitView struct {
	dir string

	mu     sync.Mutex      // guards the packs and the ref; a commit takes it
	linked map[string]bool // packs of the view
	at     packfile.Hash   // the head that the ref names

	indexMu sync.Mutex // guards the index, which takes longer to write; no commit waits for it
	indexed *manifest  // the manifest that the index shows
}

// ensureView creates the space's git view, or updates it to head. The caller holds
// seeds.turn.
func (r *repo) ensureView() error {
	d := &r.seeds
	d.mu.Lock()
	v := d.view
	d.mu.Unlock()
	if v != nil {
		return r.syncViewToHead(v)
	}
	v = &gitView{dir: filepath.Join(r.seedDir(), "git"), linked: map[string]bool{}}
	if err := removeTree(v.dir); err != nil {
		return err
	}
	for _, sub := range []string{"", "objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "info"} {
		if err := packfile.MkdirMode(filepath.Join(v.dir, sub), 0o755); err != nil {
			return err
		}
	}
	for name, data := range map[string]string{"HEAD": "ref: " + branch + "\n", "config": viewConfig} {
		if err := packfile.ReplaceFile(filepath.Join(v.dir, name), []byte(data), 0o644); err != nil {
			return err
		}
	}
	// No commit may come between the first look at the packs and the moment when
	// commits begin to move the view.
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if err := v.moveTo(r.db, r.head.Load().id); err != nil {
		return err
	}
	d.mu.Lock()
	d.view = v
	d.mu.Unlock()
	return nil
}

// moveTo updates the view's packs and ref to a head.
func (v *gitView) moveTo(db *packfile.DB, head packfile.Hash) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.linkPacks(db); err != nil {
		return err
	}
	if err := packfile.ReplaceFile(filepath.Join(v.dir, filepath.FromSlash(branch)), []byte(head.String()+"\n"), 0o644); err != nil {
		return err
	}
	v.at = head
	return nil
}

// refAt returns the head that the ref names.
func (v *gitView) refAt() packfile.Hash {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at
}

// syncViewToHead moves the view to head, if headMoved failed to do so. The caller holds
// seeds.turn. A holder of seeds.turn may lock commitMu, but a holder of commitMu must not
// wait for seeds.turn.
func (r *repo) syncViewToHead(v *gitView) error {
	if v.refAt() == r.head.Load().id {
		return nil
	}
	// Without the lock, a commit could move the view, and this call could move it back.
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	return v.moveTo(r.db, r.head.Load().id)
}

// linkPacks makes the view's packs match the repository's. It first adds the new packs, and
// then removes the packs that the repository no longer contains.
func (v *gitView) linkPacks(db *packfile.DB) error {
	dir := filepath.Join(v.dir, "objects", "pack")
	var missing, gone []string
	db.Mu.RLock()
	for name := range db.Packs {
		if !v.linked[name] {
			missing = append(missing, name)
		}
	}
	for name := range v.linked {
		if db.Packs[name] == nil {
			gone = append(gone, name)
		}
	}
	db.Mu.RUnlock()
	for _, name := range missing {
		for _, ext := range []string{".pack", ".idx"} { // the index last, because git looks for it
			if err := linkOrCopy(filepath.Join(db.PackDir(), name+ext), filepath.Join(dir, name+ext)); err != nil {
				return err
			}
		}
		v.linked[name] = true
	}
	for _, name := range gone {
		for _, ext := range []string{".idx", ".pack"} {
			if err := os.Remove(filepath.Join(dir, name+ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		delete(v.linked, name)
	}
	return nil
}

// linkOrCopy creates to as a hard link to from, or as a copy if the file system does not
// support hard links.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "tmp_pack_*")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o444)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return err
}

// shows reports whether the view, including its index, is at a head.
func (v *gitView) shows(head packfile.Hash) bool {
	if v.refAt() != head {
		return false
	}
	v.indexMu.Lock()
	defer v.indexMu.Unlock()
	return v.indexed != nil && v.indexed.head == head
}

// writeIndex writes the view's index, which lists the files of the manifest.
func (v *gitView) writeIndex(m *manifest) error {
	v.indexMu.Lock()
	defer v.indexMu.Unlock()
	if v.indexed == m {
		return nil
	}
	if err := packfile.ReplaceFile(filepath.Join(v.dir, "index"), encodeGitIndex(m.files), 0o644); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	v.indexed = m
	return nil
}

// encodeGitIndex encodes an index of version 2 (gitformat-index(5)). Fields that a
// manifest does not contain (inode, owner, change time) are zero. The view's configuration
// tells git to ignore them.
func encodeGitIndex(files []manifestFile) []byte {
	n := 32
	for _, f := range files {
		n += 72 + len(f.path)
	}
	b := make([]byte, 0, n)
	b = append(b, "DIRC\x00\x00\x00\x02"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(files)))
	for _, f := range files {
		start := len(b)
		for _, v := range [...]uint32{0, 0, f.mtime, 0, 0, 0, f.mode, 0, 0, f.size} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		b = append(b, f.hash[:]...)
		b = binary.BigEndian.AppendUint16(b, uint16(min(len(f.path), 0xfff)))
		b = append(b, f.path...)
		pad := 8 - (len(b)-start)%8
		b = append(b, "\x00\x00\x00\x00\x00\x00\x00\x00"[:pad]...)
	}
	h := packfile.NewSHA1()
	h.Write(b)
	return h.Sum(b)
}
