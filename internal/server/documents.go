package server

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// documents converts the documents of sources. It converts each document in a sandbox of its own,
// without a network and without anyone's space.
type documents struct {
	runtime space.Runtime // nil if the configuration switches sandboxes off
	dir     string        // directory of temporary files
	limits  space.Limits
	places  chan struct{} // limits how many conversions run at once
}

const (
	documentsAtOnce = 2
	documentTime    = time.Minute
	// fileSizeExit is the exit code of a program that exceeded the limit of a file's size
	// (SIGXFSZ).
	fileSizeExit = 128 + 25
)

func newDocuments(rt Runtime, dataDir string, limits space.Limits, maxFile int64) (*documents, error) {
	limits.WallTime, limits.FileSize = documentTime, maxFile
	d := &documents{dir: filepath.Join(dataDir, "run", "documents"), limits: limits, places: make(chan struct{}, documentsAtOnce)}
	if rt != nil {
		d.runtime = rt
	}
	return d, os.RemoveAll(d.dir) // a killed process leaves files
}

// convert implements upstream.Env.Convert.
func (d *documents) convert(ctx context.Context, name string, content []byte) ([]byte, error) {
	run := d.run
	if d.runtime == nil {
		run = nil
	}
	return upstream.Convert(ctx, run, name, content)
}

// run is an upstream.Run.
func (d *documents) run(ctx context.Context, c upstream.Command) ([]byte, int, error) {
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, 0, err
	}
	res, err := sandbox.Once{Runtime: d.runtime, Dir: d.dir, Limits: d.limits, Command: c.Shell, Files: c.Files, Output: c.Output}.Run(ctx)
	if err != nil {
		return nil, 0, err
	}
	refuse := func(r upstream.Reason, text string) ([]byte, int, error) {
		return nil, 0, &upstream.Refusal{Reason: r, Err: fault.New(fault.Invalid, "%s", text)}
	}
	switch {
	case res.End == protocol.TimedOut:
		return refuse(upstream.TooSlow, "The document takes longer to convert than the minute that it may take. Divide the document.")
	case res.End == protocol.OutOfMemory:
		return refuse(upstream.TooSlow, "The document takes more memory to convert than sandboxes have. Divide the document.")
	case res.End != protocol.Exited:
		return refuse(upstream.Unreadable, "The document ended the sandbox in which it was converted.")
	case res.Problem != "" || res.ExitCode == fileSizeExit:
		return refuse(upstream.TooLarge, "The text of the document is larger than a file may be. Divide the document.")
	}
	return res.Output, res.ExitCode, nil
}
