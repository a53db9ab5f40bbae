package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrProtocol is in the tree of every error that a broken or hostile agent causes. Such
// an error closes the connection.
var ErrProtocol = errors.New("agent: protocol violation")

// A frame is a header of 12 bytes and a payload. The header holds the version, the kind,
// the flags, a zero byte, the id of the call and the length of the payload (both big
// endian). A message is one or more frames of the same kind and id. All frames but the
// last carry flagMore.
const (
	protocolVersion = 1
	frameHeader     = 12
	// maxPayload keeps one message from holding up the others for long.
	maxPayload = 256 << 10
	flagMore   = 1
)

type kind uint8

// Messages from the host.
const (
	kindBoot kind = 1 + iota
	kindExec
	kindCancel // ends the Exec with this id; has no reply of its own
	kindCollect
	kindAck
	kindApply
	kindJobs
	kindKill
	kindShutdown
)

// Messages from the agent.
const (
	kindReply   kind = 32 + iota
	kindFailure      // instead of a reply: a failure code and a text for logs
	kindOutput       // live output of a running Exec; some may be missing, but the order is right
	kindJobEnd       // the end of a job; belongs to no call, so the id is 0
)

type frame struct {
	kind    kind
	more    bool
	id      uint32
	payload []byte
}

// appendFrame appends the encoding of f. The payload must fit.
func appendFrame(b []byte, f frame) []byte {
	var flags byte
	if f.more {
		flags = flagMore
	}
	b = append(b, protocolVersion, byte(f.kind), flags, 0)
	b = binary.BigEndian.AppendUint32(b, f.id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	return append(b, f.payload...)
}

// appendMessage appends as many frames as body needs.
func appendMessage(b []byte, k kind, id uint32, body []byte) []byte {
	for len(body) > maxPayload {
		b = appendFrame(b, frame{kind: k, id: id, more: true, payload: body[:maxPayload]})
		body = body[maxPayload:]
	}
	return appendFrame(b, frame{kind: k, id: id, payload: body})
}

// frameReader reads frames into one buffer. A frame's payload is valid until the next
// call.
type frameReader struct {
	r    io.Reader
	head [frameHeader]byte
	buf  []byte
}

// next returns io.EOF if the stream ends between frames; every other format error wraps
// ErrProtocol.
func (fr *frameReader) next() (frame, error) {
	if _, err := io.ReadFull(fr.r, fr.head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return frame{}, fmt.Errorf("%w: the stream ends inside a frame", ErrProtocol)
		}
		return frame{}, err
	}
	h := fr.head
	n := binary.BigEndian.Uint32(h[8:])
	switch {
	case h[0] != protocolVersion:
		return frame{}, fmt.Errorf("%w: version %d", ErrProtocol, h[0])
	case h[2]&^flagMore != 0 || h[3] != 0:
		return frame{}, fmt.Errorf("%w: unknown flags", ErrProtocol)
	case n > maxPayload:
		return frame{}, fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, n)
	}
	if cap(fr.buf) < int(n) {
		fr.buf = make([]byte, max(int(n), 4096))
	}
	p := fr.buf[:n]
	if _, err := io.ReadFull(fr.r, p); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return frame{}, fmt.Errorf("%w: the stream ends inside a frame", ErrProtocol)
		}
		return frame{}, err
	}
	return frame{kind: kind(h[1]), more: h[2]&flagMore != 0, id: binary.BigEndian.Uint32(h[4:]), payload: p}, nil
}

// requestReader assembles the host's frames into requests. It never holds more than most
// bytes of incomplete requests.
type requestReader struct {
	frames frameReader
	most   int
	held   int
	parts  map[uint32][]byte
}

func newRequestReader(r io.Reader) *requestReader {
	return &requestReader{frames: frameReader{r: r}, most: maxRequest, parts: make(map[uint32][]byte)}
}

// next returns the next request, with the errors of a frameReader.
func (r *requestReader) next() (k kind, id uint32, body []byte, err error) {
	for {
		f, err := r.frames.next()
		if err != nil {
			return 0, 0, nil, err
		}
		if f.more && len(f.payload) == 0 {
			return 0, 0, nil, fmt.Errorf("%w: an empty part of a request", ErrProtocol)
		}
		if r.held+len(f.payload) > r.most {
			return 0, 0, nil, fmt.Errorf("%w: requests of more than %d bytes", ErrProtocol, r.most)
		}
		r.held += len(f.payload)
		body := append(r.parts[f.id], f.payload...)
		if f.more {
			r.parts[f.id] = body
			continue
		}
		delete(r.parts, f.id)
		r.held -= len(body)
		return f.kind, f.id, body, nil
	}
}
