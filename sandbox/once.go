package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// Once is a command that runs in a sandbox of its own, without anybody's space. Use it for
// programs that read untrusted data.
type Once struct {
	Runtime space.Runtime
	// Dir is the directory of temporary files. It must exist.
	Dir string
	// Limits bound the sandbox. Limits.WallTime also bounds the command, and Limits.FileSize the
	// content of the file Output.
	Limits space.Limits
	// Command is the text for bash -c. It runs in a directory that contains Files, and
	// writes the file Output there.
	Command string
	Files   map[string][]byte
	Output  string
}

// OnceResult is the outcome of a Once.
type OnceResult struct {
	End      protocol.End
	ExitCode int
	// Output is the content of the output file; nil if the command failed or wrote none. Problem
	// says why the content of an existing file is missing, such as its size, or why the sandbox
	// ended if End is protocol.Lost.
	Output  []byte
	Problem string
}

// Run runs the command. If the sandbox does not start, the error wraps that of the runtime.
func (o Once) Run(ctx context.Context) (_ OnceResult, err error) {
	checkout, err := o.checkout()
	if err != nil {
		return OnceResult{}, err
	}
	defer func() {
		if e := os.RemoveAll(filepath.Dir(checkout.Dir)); e != nil {
			err = errors.Join(err, fmt.Errorf("remove the files of a command: %w", e))
		}
	}()
	startCtx, cancel := context.WithTimeout(ctx, onceStart)
	defer cancel()
	var id [32]byte
	rand.Read(id[:])
	sb, err := o.Runtime.Start(startCtx, space.SandboxSpec{ID: space.SandboxID(hex.EncodeToString(id[:])), Checkout: checkout, Limits: o.Limits})
	if err != nil {
		return OnceResult{}, fmt.Errorf("start a sandbox: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if e := sb.Stop(ctx); e != nil {
			err = errors.Join(err, e)
		}
	}()
	l := o.Limits
	agent, err := protocol.Connect(startCtx, sb.Conn(), protocol.Boot{
		Disk: l.Disk, Inodes: l.Inodes, Tmp: l.Tmp, Output: 1 << 20, Processes: l.Processes, OpenFiles: l.OpenFiles, FileSize: l.FileSize,
	})
	if err != nil {
		return OnceResult{}, fmt.Errorf("reach the agent: %w", endOf(startCtx, sb, err))
	}
	defer agent.Close()
	out, err := o.exec(ctx, agent)
	if err == nil || ctx.Err() != nil {
		return out, err
	}
	// The sandbox ended while the command ran.
	if err = endOf(ctx, sb, err); errors.Is(err, space.ErrOutOfMemory) {
		return OnceResult{End: protocol.OutOfMemory, ExitCode: -1}, nil
	}
	return OnceResult{End: protocol.Lost, ExitCode: -1, Problem: err.Error()}, nil
}

const (
	onceStart   = 2 * time.Minute
	onceCollect = 30 * time.Second
)

// checkout writes the files of the command to a new checkout for its sandbox.
func (o Once) checkout() (*space.Checkout, error) {
	dir, err := os.MkdirTemp(o.Dir, "command-") // with mode 0700
	if err != nil {
		return nil, err
	}
	c := &space.Checkout{Dir: filepath.Join(dir, "space"), GitView: filepath.Join(dir, "git"), Library: filepath.Join(dir, "library"), Release: func() {}}
	for _, d := range []string{c.Dir, c.GitView, c.Library} {
		err = errors.Join(err, os.Mkdir(d, 0o777), os.Chmod(d, 0o777)) // Chmod ignores the umask
	}
	for name, content := range o.Files {
		file := filepath.Join(c.Dir, name)
		err = errors.Join(err, os.WriteFile(file, content, 0o666), os.Chmod(file, 0o666))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

func (o Once) exec(ctx context.Context, agent *protocol.Client) (OnceResult, error) {
	res, err := agent.Exec(ctx, protocol.ExecRequest{Command: o.Command, WallTime: o.Limits.WallTime, HeadTail: 1 << 10}, nil)
	if err != nil {
		return OnceResult{}, err
	}
	out := OnceResult{End: res.End, ExitCode: res.ExitCode}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if out.End != protocol.Exited || out.ExitCode != 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, onceCollect)
	defer cancel()
	b, err := agent.Collect(ctx, protocol.CollectLimits{Entries: 1000, FileSize: o.Limits.FileSize, Total: 2 * o.Limits.FileSize})
	if err != nil {
		return out, err
	}
	for _, e := range b.Entries {
		if e.Path == o.Output && e.Mode == space.Regular && !e.Dir && !e.Deleted {
			out.Output, out.Problem = e.Content, e.Problem
		}
	}
	return out, nil
}
