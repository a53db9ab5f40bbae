package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// line is one line of In.
type line struct {
	data []byte
	// long describes a line that is longer than the proxy accepts. data is then empty.
	long *outline
}

// lineReader reads lines of any length and keeps those of at most most bytes.
type lineReader struct {
	r    *bufio.Reader
	most int
}

// next returns the next line that is not empty, without white space around it. It also returns
// an unfinished last line, because the client may have ended right after it.
func (l lineReader) next() (line, error) {
	for {
		var data []byte
		var long *outline
		for {
			part, err := l.r.ReadSlice('\n')
			switch {
			case long != nil:
				long.feed(part)
			case len(data)+len(part) > l.most+1: // plus the line's end
				long = &outline{}
				long.feed(data)
				long.feed(part)
				data = nil
			default:
				data = append(data, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if long != nil {
				return line{long: long}, nil
			}
			if data = bytes.TrimSpace(data); len(data) > 0 {
				return line{data: data}, nil
			}
			if err != nil {
				return line{}, err
			}
			break
		}
	}
}

// maxScalar bounds the id and the method that an outline keeps, in bytes.
const maxScalar = 512

// outline finds the id and the method of a JSON-RPC message of any length without keeping the
// message. So even a request that is too large gets an answer. The result for invalid JSON is
// meaningless.
type outline struct {
	id     json.RawMessage // nil if there is none
	method bool            // the message has a method

	depth    int
	inString bool
	escaped  bool
	key      string // the current member's name, with its quotes
	token    []byte // the part of a key or a value at depth 1 that was read
}

func (o *outline) feed(b []byte) {
	for _, c := range b {
		if o.inString {
			o.keep(c)
			switch {
			case o.escaped:
				o.escaped = false
			case c == '\\':
				o.escaped = true
			case c == '"':
				o.inString = false
			}
			continue
		}
		switch c {
		case ' ', '\t', '\r', '\n':
		case '"':
			o.inString = true
			o.keep(c)
		case '{', '[':
			o.keep(c) // an id or a method never begins like this
			o.depth++
		case '}', ']':
			if o.depth == 1 {
				o.endMember()
			}
			o.depth--
		case ':':
			if o.depth == 1 {
				o.key, o.token = string(o.token), nil
			}
		case ',':
			if o.depth == 1 {
				o.endMember()
			}
		default:
			o.keep(c)
		}
	}
}

func (o *outline) keep(c byte) {
	if o.depth == 1 && len(o.token) <= maxScalar {
		o.token = append(o.token, c)
	}
}

func (o *outline) endMember() {
	if len(o.token) <= maxScalar && json.Valid(o.token) {
		switch o.key {
		case `"id"`:
			o.id = o.token
		case `"method"`:
			o.method = true
		}
	}
	o.key, o.token = "", nil
}

// readEvents calls emit with the data of every server-sent event (HTML Standard, section 9.2)
// that carries a JSON-RPC message. An event may have at most most bytes.
func readEvents(r io.Reader, most int, emit func([]byte)) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, most+len("data: \r\n"))
	var data []byte
	for s.Scan() {
		text := s.Bytes()
		if len(text) == 0 {
			if line := withID(data, nil); line != nil {
				emit(line)
			}
			data = nil
			continue
		}
		if rest, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			rest = bytes.TrimPrefix(rest, []byte(" "))
			if len(data)+len(rest) > most {
				return errTooLong
			}
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, rest...)
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return errTooLong
	}
	return s.Err()
}

var errTooLong = errors.New("a message is too long")
