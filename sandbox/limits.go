package sandbox

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"satchel/internal/bytesize"
	"satchel/sandbox/protocol"
)

// Limit names a limit of a sandbox.
type Limit string

// The limits that a command can exceed without ending the sandbox. A sandbox that exceeds its
// memory ends, with the error space.ErrOutOfMemory.
const (
	LimitDisk      Limit = "sandbox.disk"
	LimitInodes    Limit = "sandbox.inodes"
	LimitTmp       Limit = "sandbox.tmp"
	LimitFileSize  Limit = "sandbox.file_size"
	LimitOpenFiles Limit = "sandbox.open_files"
	LimitProcesses Limit = "sandbox.processes"
	LimitWallTime  Limit = "sandbox.wall_time"
	LimitOutput    Limit = "sandbox.output_chars"
)

// signs match the messages of programs that reach a limit. Such messages come from the command's
// output, so the notes are worded as guesses. The expressions are compiled at their first use,
// because most processes do not need them.
var signs = sync.OnceValue(func() []sign {
	return []sign{
		{LimitDisk, regexp.MustCompile(`No space left on device|\bENOSPC\b|not enough (disk )?space|[Dd]isk full`)},
		{LimitFileSize, regexp.MustCompile(`File size limit exceeded|File too large|\bEFBIG\b`)},
		{LimitOpenFiles, regexp.MustCompile(`Too many open files|too many open files|\bEMFILE\b`)},
		{LimitProcesses, regexp.MustCompile(`(fork|clone|spawn|exec|thread)[^\n]*([Rr]esource temporarily unavailable|\bEAGAIN\b)|can't start new thread|[Cc]an(no|')t fork|pthread_create failed`)},
	}
})

type sign struct {
	limit Limit
	says  *regexp.Regexp
}

// sizeSignal ends a program that writes beyond the size limit of a file. sizeExit is the shell's
// exit code for this signal.
const (
	sizeSignal = "SIGXFSZ"
	sizeExit   = 128 + 25
)

// limitsMet returns the limits that a command seems to have reached, judged by its result.
// LimitDisk stands for every limit with the message "No space left on device".
func limitsMet(er protocol.ExecResult) []Limit {
	var met []Limit
	for _, s := range signs() {
		hit := s.limit == LimitFileSize && (er.Signal == sizeSignal || er.ExitCode == sizeExit)
		for _, part := range [][]byte{er.Stderr.Head, er.Stderr.Tail, er.Stdout.Head, er.Stdout.Tail} {
			hit = hit || s.says.Match(part)
		}
		if hit {
			met = append(met, s.limit)
		}
	}
	return met
}

// noteLimits adds the limits that the command reached to the answer.
func (c *command) noteLimits(ctx context.Context, er protocol.ExecResult) {
	o := &c.pool.o
	for _, l := range limitsMet(er) {
		if er.ExitCode == 0 && er.End == protocol.Exited && l != LimitDisk {
			continue // the command only printed such a message, or recovered
		}
		if l != LimitDisk {
			c.met(l)
			continue
		}
		full := c.fullest(ctx)
		if len(full) == 0 && er.ExitCode != 0 {
			c.res.Limits = append(c.res.Limits, LimitDisk)
			c.note("A file system was full during the command, and no longer is. In this sandbox, changed files can have %s in %d files, and /tmp can have %s; "+
				"the server's operator can raise all three with sandbox.disk.", bytesize.Text(o.Limits.Disk), o.Limits.Inodes, bytesize.Text(o.Limits.Tmp))
		}
		for _, l := range full {
			c.met(l)
		}
	}
	if c.res.Stdout.Cut+c.res.Stderr.Cut > 0 && er.End != protocol.Detached {
		c.met(LimitOutput)
	}
}

// met adds one limit to the answer, and a note that explains the limit.
func (c *command) met(l Limit) {
	if !slices.Contains(c.res.Limits, l) {
		c.res.Limits = append(c.res.Limits, l)
	}
	lim := c.pool.o.Limits
	var what string
	switch l {
	case LimitDisk:
		what = "The sandbox is full: the changed files in it can have " + bytesize.Text(lim.Disk)
	case LimitInodes:
		what = fmt.Sprintf("The sandbox is full: it can have %d changed files", lim.Inodes)
	case LimitTmp:
		what = "/tmp is full: it can have " + bytesize.Text(lim.Tmp)
	case LimitFileSize:
		what = "The command seems to have reached the size limit of one file, " + bytesize.Text(lim.FileSize)
	case LimitOpenFiles:
		what = fmt.Sprintf("The command seems to have reached the limit of open files, %d in one process", lim.OpenFiles)
	case LimitProcesses:
		what = fmt.Sprintf("The command seems to have reached the limit of processes and threads, %d in one sandbox", lim.Processes)
	case LimitOutput:
		what = fmt.Sprintf("The output is cut: an answer can have %d characters of output", c.pool.o.OutputChars)
	case LimitWallTime:
		what = fmt.Sprintf("The command was ended after %s, the time limit", c.wallTime())
		if c.wallTime() != c.pool.o.WallTime {
			c.note("%s that it was given.", what)
			return
		}
	}
	if key := l.key(); key != "" {
		what += " (the server's operator can raise " + key + ")"
	}
	c.note("%s.", what)
}

// key returns the option that raises a limit, or "" for a fixed limit.
func (l Limit) key() string {
	switch l {
	case LimitInodes, LimitTmp, LimitFileSize:
		return string(LimitDisk) // they are a share of the disk
	case LimitOpenFiles, LimitOutput:
		return ""
	}
	return string(l)
}

// lookCommand prints the free blocks and the free inodes of the space and of /tmp. It must work in
// a full sandbox, so it creates no file, and with exec it needs no second process.
const lookCommand = "exec stat -f -c '%a %d' . /tmp"

// A file system with fewer free blocks than scarceBlocks, or fewer free inodes than scarceInodes,
// counts as full, because a failed write may leave a little free.
const (
	scarceBlocks = 16
	scarceInodes = 4
)

// fullest reports which file systems of the sandbox are full now.
func (c *command) fullest(ctx context.Context) []Limit {
	ctx, cancel := context.WithTimeout(c.pool.hardValues(ctx), c.pool.o.AnswerTime)
	defer cancel()
	r, err := c.agent.Exec(ctx, protocol.ExecRequest{Command: lookCommand, ReadOnly: c.req.ReadOnly, WallTime: c.pool.o.AnswerTime, HeadTail: 256}, nil)
	if err != nil || r.End != protocol.Exited || r.ExitCode != 0 {
		return nil
	}
	return parseFull(string(r.Stdout.Head))
}

// parseFull reads the output of lookCommand, which is not trusted.
func parseFull(s string) []Limit {
	f := strings.Fields(s)
	if len(f) != 4 {
		return nil
	}
	var n [4]uint64
	for i := range f {
		var err error
		if n[i], err = strconv.ParseUint(f[i], 10, 64); err != nil {
			return nil
		}
	}
	var full []Limit
	if n[0] < scarceBlocks {
		full = append(full, LimitDisk)
	}
	if n[1] < scarceInodes {
		full = append(full, LimitInodes)
	}
	if n[2] < scarceBlocks || n[3] < scarceInodes {
		full = append(full, LimitTmp)
	}
	return full
}

// renew stops a full sandbox if all its changes are committed and nothing else uses it. The next
// command starts a new sandbox from these changes, with an empty disk.
func (c *command) renew() {
	full := slices.Contains(c.res.Limits, LimitDisk) || slices.Contains(c.res.Limits, LimitInodes)
	p := c.pool
	if !full || c.res.NotSaved != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.hard, p.o.AnswerTime)
	defer cancel()
	if c.tree.lock(ctx) != nil {
		return
	}
	kept := len(c.refused)+len(c.pending) > 0
	c.tree.unlock()
	if kept || !c.alone() || len(c.fullest(ctx)) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.refs == 1 && c.state == live {
		c.stop(StopFull, p.o.Grace)
		c.note("The changes are committed, so the next command starts a fresh sandbox with free space and an empty /tmp.")
	}
}
