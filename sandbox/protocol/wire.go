package protocol

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// encoder writes the fields of a message one after the other: integers as
// varints, bytes with their length before them.
type encoder struct{ b []byte }

func (e *encoder) uint(v uint64)            { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)              { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) byte(v byte)              { e.b = append(e.b, v) }
func (e *encoder) duration(v time.Duration) { e.int(int64(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

func (e *encoder) bytes(v []byte) {
	e.uint(uint64(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) string(v string) {
	e.uint(uint64(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) time(v time.Time) { e.int(v.UnixNano()) }

// decoder reads what encoder wrote. The first malformed field sets err, and
// everything after it reads as zero: callers check done once.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: malformed %s, %d bytes before the end", ErrProtocol, what, len(d.b))
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("integer")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("integer")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// small reads an integer between 0 and most.
func (d *decoder) small(most int) int {
	v := d.uint()
	if v > uint64(most) {
		d.fail("integer: out of range")
		return 0
	}
	return int(v)
}

// size reads a number of bytes, which is never negative.
func (d *decoder) size() int64 {
	v := d.uint()
	if v > math.MaxInt64 {
		d.fail("size")
		return 0
	}
	return int64(v)
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("byte")
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool {
	switch d.byte() {
	case 0:
		return false
	case 1:
		return true
	}
	d.fail("boolean")
	return false
}

// bytes returns a part of the input, not a copy; nil if it is empty.
func (d *decoder) bytes(most int) []byte {
	n := d.uint()
	if n > uint64(most) || n > uint64(len(d.b)) {
		d.fail("bytes: too many")
		return nil
	}
	if n == 0 {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string(most int) string { return string(d.bytes(most)) }

func (d *decoder) duration() time.Duration { return time.Duration(d.int()) }

func (d *decoder) time() time.Time { return time.Unix(0, d.int()) }

// list reads the length of a list whose items take at least one byte each. So a count
// cannot make the decoder allocate more than the message's size.
func (d *decoder) list(most int) int {
	n := d.uint()
	if n > uint64(most) || n > uint64(len(d.b)) {
		d.fail("list: too long")
		return 0
	}
	return int(n)
}

// done returns the error of the first malformed field, or an error if bytes are left.
func (d *decoder) done() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("message: bytes after its end")
	}
	return d.err
}
