package evaluate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"satchel/internal/fault"
)

// MaxLine bounds a line of a collection's files, in bytes. No document of a research
// collection is that long, and a line of this length fits into memory.
const MaxLine = 64 << 20

// textLine is a line of a file, without its end.
type textLine struct {
	number int   // counted from 1
	offset int64 // the offset of the line's first byte
	text   []byte
}

// openRegular opens a file that must be regular, because opening a named pipe could block for
// ever.
func openRegular(file string) (*os.File, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fault.New(fault.Invalid, "%s is not a file.", filepath.Base(file))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	return f, nil
}

// eachLine calls each for every line of a file, except blank lines. It removes a byte order mark
// and accepts both kinds of line ends. The text of a line is valid until each returns. The
// errors of eachLine name the file.
func eachLine(file string, each func(textLine) error) error {
	f, err := openRegular(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	l := textLine{}
	for next := int64(0); ; {
		text, err := readLine(r)
		if errors.Is(err, errLong) {
			return lineError(file, l.number+1, "it is longer than %d MB", MaxLine>>20)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return unreadable(file, err)
		}
		l.number, l.offset = l.number+1, next
		next += int64(len(text))
		if l.number == 1 && bytes.HasPrefix(text, []byte("\ufeff")) {
			text = text[3:]
			l.offset += 3
		}
		l.text = bytes.TrimRight(text, "\r\n")
		if len(bytes.TrimSpace(l.text)) > 0 {
			if err := each(l); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

var errLong = errors.New("line is too long")

// readLine returns a line with its line end. At the end of the file, it returns the rest and
// io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	whole := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(whole) > MaxLine {
			return nil, errLong
		}
		line, err = r.ReadSlice('\n')
		whole = append(whole, line...)
	}
	return whole, err
}

// lineError describes the problem of a line.
func lineError(file string, number int, format string, args ...any) error {
	return fault.New(fault.Invalid, "Line %d of %s cannot be used: %s.", number, filepath.Base(file), fmt.Sprintf(format, args...))
}

func unreadable(file string, err error) error {
	var p *os.PathError
	cause := err
	if errors.As(err, &p) {
		cause = p.Err
	}
	code := fault.Unavailable
	if errors.Is(err, os.ErrNotExist) {
		code = fault.NotFound
	}
	return fault.Wrap(err, code, "%s cannot be read: %s.", file, cause)
}
