package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
)

// terminal opens a pseudo-terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testenv.SkipOrFail(t, "there are no pseudo-terminals: "+err.Error())
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// On a terminal the first key is shown, once, and kept nowhere.
func TestTheFirstKeyOnATerminal(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	run := func() string {
		master, slave := terminal(t)
		cmd := exec.Command("satchel", "serve", "--data", data, "--listen", "127.0.0.1:0")
		cmd.Env, cmd.Stdout, cmd.Stderr = environment(t), slave, io.Discard
		err := cmd.Start()
		slave.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		var shown strings.Builder
		b := make([]byte, 4096)
		for !strings.Contains(shown.String(), "Other clients with the key:") {
			n, err := master.Read(b)
			shown.Write(b[:n])
			if err != nil {
				t.Fatalf("%v after %s", err, shown.String())
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(master) // ends with EIO when the last one closes the terminal
		shown.Write(rest)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		return shown.String()
	}
	first := run()
	key := strings.TrimSpace(regexp.MustCompile(`\ssatchel_[\w-]{49}\s`).FindString(first))
	link := regexp.MustCompile(`http://localhost:\d+/signin/link/satchel_ll_[\w-]{49}\s`).FindString(first)
	if key == "" || link == "" || !strings.Contains(first, "shown this once:") {
		t.Fatalf("the first start shows %s", first)
	}
	if again := run(); strings.Contains(again, "satchel_") || !strings.Contains(again, "To make an API key") || !strings.Contains(again, "login-link") {
		t.Errorf("the second start shows %s", again)
	}
	err := filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(key)) {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
