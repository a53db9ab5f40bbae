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

// On a terminal the first start shows a link that signs the admin in, once. No key is made, and
// the log follows only with --verbose.
func TestTheFirstStartOnATerminal(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	run := func(flags ...string) string {
		master, slave := terminal(t)
		cmd := exec.Command("satchel", append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, flags...)...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environment(t), slave, slave
		err := cmd.Start()
		slave.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		var shown strings.Builder
		b := make([]byte, 4096)
		for !strings.Contains(shown.String(), "  Stop ") {
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
	link := regexp.MustCompile(`http://localhost:\d+/signin/link/(satchel_ll_[\w-]{49})\s`).FindStringSubmatch(first)
	if link == nil || !regexp.MustCompile(`http://localhost:\d+/mcp\s`).MatchString(first) || !strings.Contains(first, data) {
		t.Fatalf("the first start shows %s", first)
	}
	if strings.Contains(first, "level=INFO") {
		t.Errorf("the log follows the block: %s", first)
	}
	if again := run("--verbose"); strings.Contains(again, "satchel_") || !strings.Contains(again, "login-link") || !strings.Contains(again, "level=INFO") {
		t.Errorf("the second start, with --verbose, shows %s", again)
	}
	if _, err := os.Stat(filepath.Join(data, "admin-key")); !os.IsNotExist(err) {
		t.Errorf("there is a file for a key: %v", err)
	}
	err := filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(link[1])) {
			t.Errorf("%s has the link", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
