package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader reads lines of any length. It drops the content of a line that has more than most
// bytes.
type lineReader struct {
	r    *bufio.Reader
	most int
}

// next returns the next line that is not empty, without white space around it. It returns nil for
// a line that is too long. It also returns an unfinished last line, because the client may have
// ended right after it.
func (l lineReader) next() ([]byte, error) {
	for {
		var data []byte
		long := false
		for {
			part, err := l.r.ReadSlice('\n')
			if long = long || len(data)+len(part) > l.most+1; long { // 1 for the line's end
				data = nil
			} else {
				data = append(data, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if data = bytes.TrimSpace(data); long || len(data) > 0 {
				return data, nil
			}
			if err != nil {
				return nil, err
			}
			break
		}
	}
}

// readEvents calls emit with the data of every server-sent event (HTML Standard, section 9.2)
// that carries a JSON-RPC message. If an event has more than most bytes, the error is errTooLong.
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
