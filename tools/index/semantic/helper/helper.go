// Package helper runs satchel-embed, a program that serves an embedding model on a socket of
// this machine, in OpenAI's format. [Find] finds the program, and [Start] runs it.
//
// It is a separate program so that the server does not contain the code that runs models,
// because the server's binary also runs in every sandbox.
//
// The program ends when this process ends for any reason, because its standard input then
// closes. Its environment is empty, and so contains no secret. The helper restarts it after a
// failure, with growing delays.
package helper

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Program is the name of the program.
const Program = "satchel-embed"

// Options describe the program to run.
type Options struct {
	// Path is the path of the program; see Find.
	Path string
	// Model is the directory of the model.
	Model string
	// Socket is the path where the program listens. Only this user may have access to its
	// directory.
	Socket string
	// Logger receives the program's output and how it ends. Default: nothing is logged.
	Logger *slog.Logger
	// RestartAfter is the wait before the program is started again. While the program keeps
	// ending within a minute, the wait doubles, up to 64 times RestartAfter. Default 1 s.
	RestartAfter time.Duration
}

// Find returns the path of the program: next to this one, or in the PATH.
func Find() (string, error) {
	if exe, err := os.Executable(); err == nil {
		p := filepath.Join(filepath.Dir(exe), Program)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p, nil
		}
	}
	p, err := exec.LookPath(Program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed, neither beside satchel nor in the PATH", Program)
	}
	return p, nil
}

// Helper is the running program.
type Helper struct {
	o      Options
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Start starts the program and returns at once. Close ends the program.
func Start(o Options) *Helper {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.RestartAfter <= 0 {
		o.RestartAfter = time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &Helper{o: o, cancel: cancel}
	h.wg.Go(func() { h.keep(ctx) })
	return h
}

// Close ends the program and waits until it has ended.
func (h *Helper) Close() {
	h.cancel()
	h.wg.Wait()
}

const (
	maxFactor = 64
	longLived = time.Minute
)

func (h *Helper) keep(ctx context.Context) {
	for delay := h.o.RestartAfter; ctx.Err() == nil; delay = min(2*delay, maxFactor*h.o.RestartAfter) {
		began := time.Now()
		err := h.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longLived {
			delay = h.o.RestartAfter
		}
		h.o.Logger.Warn("the embedding program ended and is started again", "error", err, "after", delay)
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// run runs the program once.
func (h *Helper) run(ctx context.Context) error {
	os.Remove(h.o.Socket) // left by a program that was killed
	cmd := exec.CommandContext(ctx, h.o.Path, "--model", h.o.Model, "--socket", h.o.Socket)
	cmd.Env = []string{} // not nil, which would mean the environment of this process
	cmd.Dir = h.o.Model
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// The program ends when its standard input closes. It has WaitDelay to do so.
	cmd.Cancel = stdin.Close
	cmd.WaitDelay = 5 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	h.log(stderr)
	return cmd.Wait()
}

// log logs the program's standard error, in lines of limited length, until it is closed.
func (h *Helper) log(r io.Reader) {
	lines := bufio.NewReaderSize(r, 4096)
	for {
		line, cut, err := lines.ReadLine()
		if err != nil {
			return
		}
		h.o.Logger.Info("the embedding program says", "line", string(line))
		for cut && err == nil {
			_, cut, err = lines.ReadLine()
		}
	}
}
