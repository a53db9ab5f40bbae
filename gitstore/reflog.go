package gitstore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"

	"satchel/gitstore/packfile"
)

// logLine is one well-formed line of a reflog.
type logLine struct {
	old, now packfile.Hash
	rest     string // who, when and why, with the line's end
}

// parseLog returns the lines up to the first that is malformed or cut off, and
// how many bytes they have.
func parseLog(b []byte) (lines []logLine, size int64) {
	for {
		nl := bytes.IndexByte(b, '\n')
		if nl < 0 {
			return lines, size
		}
		f := strings.SplitN(string(b[:nl+1]), " ", 3)
		if len(f) < 3 {
			return lines, size
		}
		old, err1 := packfile.HashFrom(f[0])
		now, err2 := packfile.HashFrom(f[1])
		if errors.Join(err1, err2) != nil {
			return lines, size
		}
		lines = append(lines, logLine{old, now, f[2]})
		size, b = size+int64(nl)+1, b[nl+1:]
	}
}

// rewriteLog makes of the lines of the branch's reflog what rewrite makes of them, and
// keeps the last one even where that drops it: it is what makes head durable. Each
// names the one before it as the old commit. The caller holds commitMu.
func (r *repo) rewriteLog(rewrite func(logLine) (_ logLine, keep bool)) error {
	b, err := os.ReadFile(r.logFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines, _ := parseLog(b)
	var out bytes.Buffer
	var last packfile.Hash
	for i, l := range lines {
		x, keep := rewrite(l)
		if keep {
			l = x
		}
		if keep || i == len(lines)-1 {
			out.WriteString(last.String() + " " + l.now.String() + " " + l.rest)
			last = l.now
		}
	}
	defer r.provenance.forget()
	return r.s.o.disk.ReplaceDurable(r.logFile(), out.Bytes(), 0o600)
}
