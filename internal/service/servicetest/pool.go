//go:build unix

package servicetest

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// Box is a sandbox of [Pool]. N numbers the sandboxes of the pool from 1. Crash ends the sandbox.
type Box struct {
	N     int
	Crash func(error)
}

// Pool returns a pool over empty spaces. In its sandboxes, exec runs the commands instead of the
// agent. The pool ends with the test.
func Pool(t testing.TB, exec func(context.Context, Box, protocol.ExecRequest) (protocol.ExecResult, error)) *sandbox.Pool {
	t.Helper()
	fake, boxes := sandboxtest.NewFake(t), atomic.Int64{}
	empty := emptySpaces{t.TempDir()}
	return sandboxtest.NewPool(t, sandbox.Options{
		Runtime: fake, Checkouts: empty, Committer: empty,
		Connect: func(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (sandbox.Agent, error) {
			a, err := fake.Connect(ctx, conn, b)
			if err != nil {
				return nil, err
			}
			box := Box{int(boxes.Add(1)), a.(interface{ Crash(error) }).Crash}
			return scripted{a, func(ctx context.Context, r protocol.ExecRequest) (protocol.ExecResult, error) {
				return exec(ctx, box, r)
			}}, nil
		},
	})
}

type scripted struct {
	sandbox.Agent
	exec func(context.Context, protocol.ExecRequest) (protocol.ExecResult, error)
}

func (s scripted) Exec(ctx context.Context, r protocol.ExecRequest, _ func(protocol.Stream, []byte)) (protocol.ExecResult, error) {
	return s.exec(ctx, r)
}

// emptySpaces is a store in which every space exists and has no files.
type emptySpaces struct{ dir string }

const emptyHead = space.CommitID("0000000000000000000000000000000000000000")

func (e emptySpaces) Checkout(context.Context, space.SpaceID) (*space.Checkout, error) {
	return &space.Checkout{Head: emptyHead, Dir: e.dir, Release: func() {}}, nil
}

func (emptySpaces) Head(context.Context, space.SpaceID) (space.CommitID, error) {
	return emptyHead, nil
}

func (emptySpaces) Blob(context.Context, space.SpaceID, space.CommitID, space.Path) (space.BlobID, space.Mode, bool, error) {
	return "", 0, false, nil
}

func (emptySpaces) Files(context.Context, space.SpaceID, space.CommitID, space.Path) ([]space.Entry, error) {
	return nil, nil
}

func (emptySpaces) Diff(context.Context, space.SpaceID, space.CommitID, space.CommitID) ([]space.FileChange, error) {
	return nil, nil
}

func (emptySpaces) ReadBlob(context.Context, space.SpaceID, space.BlobID) ([]byte, error) {
	return nil, fault.New(fault.NotFound, "There is no such file.")
}

func (emptySpaces) Commit(context.Context, space.SpaceID, space.ChangeSet, space.Meta) (space.Commit, error) {
	return space.Commit{}, fault.New(fault.Forbidden, "It is a test's.")
}
