package packfile

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	gohash "hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	githash "github.com/go-git/go-git/v5/plumbing/hash"
)

// NewSHA1 returns git's hash, which detects collision attacks.
func NewSHA1() gohash.Hash { return githash.New(crypto.SHA1) }

// Writer writes a pack of complete objects, without deltas.
type Writer struct {
	Disk
	dir     string // objects/pack
	f       *os.File
	w       *bufio.Writer
	z       *zlib.Writer
	buf     bytes.Buffer
	sum     gohash.Hash
	pos     int64
	Entries []packedEntry
	Have    map[Hash]struct{}
}

type packedEntry struct {
	hash Hash
	crc  uint32
	off  int64
}

// NewWriter starts a pack in dir. Finish or Abort ends it. If the process dies, git
// recognizes the unfinished file by its name, and removes it.
func NewWriter(d Disk, dir string) (*Writer, error) {
	f, err := os.CreateTemp(dir, "tmp_pack_*")
	if err != nil {
		return nil, err
	}
	w := &Writer{Disk: d, dir: dir, f: f, w: bufio.NewWriterSize(f, 64<<10), z: d.deflater(), Have: map[Hash]struct{}{}, pos: 12}
	w.w.Write(make([]byte, 12)) // the header; Finish writes it again with the number of objects
	return w, nil
}

// Add writes an object unless the pack has it, and returns its name.
func (w *Writer) Add(k Kind, data []byte) (Hash, error) {
	h := plumbing.ComputeHash(k, data)
	return h, w.AddNamed(h, k, data)
}

// AddNamed writes an object whose hash the caller knows, unless the pack has it.
func (w *Writer) AddNamed(h Hash, k Kind, data []byte) error {
	if _, ok := w.Have[h]; ok {
		return nil
	}
	w.buf.Reset()
	size := uint64(len(data))
	c := byte(k)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		w.buf.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	w.buf.WriteByte(c)
	w.z.Reset(&w.buf)
	w.z.Write(data)
	if err := w.z.Close(); err != nil {
		return err
	}
	if _, err := w.w.Write(w.buf.Bytes()); err != nil {
		return err
	}
	w.Entries = append(w.Entries, packedEntry{h, crc32.ChecksumIEEE(w.buf.Bytes()), w.pos})
	w.Have[h] = struct{}{}
	w.pos += int64(w.buf.Len())
	return nil
}

// Finish makes the pack and its directory entry durable and visible, with two syncs. The
// index is not synced: recovery rebuilds it.
func (w *Writer) Finish() (p *Pack, err error) {
	base := ""
	defer func() {
		if err != nil {
			w.Abort()
			if base != "" { // a full disk must not leave half of the files
				os.Remove(base + ".idx")
				os.Remove(base + ".pack")
			}
		}
	}()
	sum, err := w.seal()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(w.dir, "pack-"+hex.EncodeToString(sum))
	if err := w.f.Chmod(0o444); err != nil {
		return nil, err
	}
	w.Step("pack written")
	if err := w.Sync(w.f); err != nil {
		return nil, fmt.Errorf("sync pack: %w", err)
	}
	if err := w.f.Close(); err != nil {
		return nil, err
	}
	w.Step("pack synced")
	if err := os.Rename(w.f.Name(), name+".pack"); err != nil {
		return nil, err
	}
	base = name
	w.Step("pack renamed")
	if err := ReplaceFile(base+".idx", encodeIndex(w.Entries, sum), 0o444); err != nil {
		return nil, err
	}
	w.Step("index renamed")
	if err := w.SyncDir(w.dir); err != nil {
		return nil, err
	}
	w.release()
	return Load(base)
}

// seal writes the header and the trailing checksum.
func (w *Writer) seal() ([]byte, error) {
	if err := w.w.Flush(); err != nil {
		return nil, err
	}
	head := binary.BigEndian.AppendUint32([]byte{'P', 'A', 'C', 'K', 0, 0, 0, 2}, uint32(len(w.Entries)))
	if _, err := w.f.WriteAt(head, 0); err != nil {
		return nil, err
	}
	h := NewSHA1()
	if _, err := io.Copy(h, io.NewSectionReader(w.f, 0, w.pos)); err != nil {
		return nil, err
	}
	sum := h.Sum(nil)
	_, err := w.f.WriteAt(sum, w.pos)
	return sum, err
}

// release gives back what the next Writer can use.
func (w *Writer) release() {
	w.keepDeflater(w.z)
	w.z = nil
}

// Abort removes the unfinished pack.
func (w *Writer) Abort() {
	w.release()
	w.f.Close()
	os.Remove(w.f.Name())
}

// encodeIndex returns a version 2 index (gitformat-pack(5)).
func encodeIndex(es []packedEntry, packSum []byte) []byte {
	es = slices.Clone(es)
	slices.SortFunc(es, func(a, b packedEntry) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	out := make([]byte, 0, idxHeader+idxFanout+len(es)*28+idxTail)
	out = append(out, idxMagic...)
	i := 0
	for b := range 256 {
		for i < len(es) && int(es[i].hash[0]) == b {
			i++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(i))
	}
	for _, e := range es {
		out = append(out, e.hash[:]...)
	}
	for _, e := range es {
		out = binary.BigEndian.AppendUint32(out, e.crc)
	}
	var large []int64
	for _, e := range es {
		if e.off < 1<<31 {
			out = binary.BigEndian.AppendUint32(out, uint32(e.off))
			continue
		}
		out = binary.BigEndian.AppendUint32(out, 1<<31|uint32(len(large)))
		large = append(large, e.off)
	}
	for _, o := range large {
		out = binary.BigEndian.AppendUint64(out, uint64(o))
	}
	out = append(out, packSum...)
	h := NewSHA1()
	h.Write(out)
	return h.Sum(out)
}

// IndexPack writes the index of a pack without deltas, such as the packs of commits. For
// other packs it returns ErrDelta.
func IndexPack(base string) error {
	data, err := os.ReadFile(base + ".pack")
	if err != nil {
		return err
	}
	if len(data) < 32 || string(data[:8]) != "PACK\x00\x00\x00\x02" {
		return errors.New("not a pack")
	}
	h := NewSHA1()
	h.Write(data[:len(data)-20])
	sum := data[len(data)-20:]
	if !bytes.Equal(h.Sum(nil), sum) {
		return errors.New("pack checksum does not match")
	}
	n := binary.BigEndian.Uint32(data[8:])
	r := bytes.NewReader(data)
	off := int64(12)
	var es []packedEntry
	for range n {
		e, err := ReadEntry(r, off)
		if err != nil {
			return err
		}
		if e.kind == plumbing.OFSDeltaObject || e.kind == plumbing.REFDeltaObject {
			return ErrDelta
		}
		// A bytes.Reader is an io.ByteReader, so zlib reads exactly the entry from it.
		body := bytes.NewReader(data[e.data:])
		z, err := zlib.NewReader(body)
		if err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(z, e.Size+1))
		if err != nil || int64(len(content)) != e.Size {
			return errors.Join(errors.New("damaged pack entry"), err)
		}
		end := int64(len(data)) - int64(body.Len())
		es = append(es, packedEntry{plumbing.ComputeHash(e.kind, content), crc32.ChecksumIEEE(data[off:end]), off})
		off = end
	}
	slices.SortFunc(es, func(a, b packedEntry) int { return cmp.Compare(a.off, b.off) })
	return ReplaceFile(base+".idx", encodeIndex(es, sum), 0o444)
}

// ErrDelta is the error for a pack that holds deltas, which this package does not write.
var ErrDelta = errors.New("pack holds deltas")
