package gvisor_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
	"satchel/sandbox/programs/programstest"
	"satchel/sandbox/protocol"
)

// standInCommand is the first argument with which a test binary becomes a
// stand-in for the agent.
const standInCommand = "stand-in"

// These set up a test binary that acts as a server: its directory, and a line for
// its sandbox.
const (
	serverDir   = "SATCHEL_TEST_SERVER_DIR"
	serverSpare = "SATCHEL_TEST_SERVER_SPARE" // set: the server boots a spare first
	serverLine  = "SATCHEL_TEST_SERVER_LINE"
)

// serve starts a sandbox, says its id and waits to be killed.
func serve(dir string) error {
	o := gvisor.Options{RunDir: filepath.Join(dir, "run"), Programs: programstest.WithSelf, Args: []string{protocol.Exe, standInCommand}}
	limits := space.Limits{Memory: 1 << 30}
	if os.Getenv(serverSpare) != "" {
		o.Spare, o.SpareLimits = 1, limits
	}
	r, err := gvisor.New(o)
	if err != nil {
		return err
	}
	if o.Spare > 0 {
		if err := r.Check(context.Background()); err != nil {
			return err
		}
	}
	id := oci.NewID()
	s, err := r.Start(context.Background(), space.SandboxSpec{
		ID: id, Checkout: &space.Checkout{Dir: filepath.Join(dir, "checkout")}, Limits: limits,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.Conn(), os.Getenv(serverLine)); err != nil {
		return err
	}
	fmt.Println(id)
	<-s.Done()
	return s.Err()
}

// standIn is a process 1 that does what each line of its input says and answers
// with the outcome: what a runtime promises can be seen through it without the
// agent, with all the rights that the agent has. A line is run by bash as root,
// or as a command's user after "user:"; after "!" it is one of a few things that
// bash cannot do.
func standIn() {
	fmt.Fprintln(os.Stderr, "stand-in ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		library()
		out := obey(in.Text())
		fmt.Printf("%d\n", len(out))
		os.Stdout.WriteString(out)
	}
}

// library binds the library, as the agent does when it boots. There is none before
// the first line comes.
func library() {
	if entries, err := os.ReadDir(protocol.LibraryDir); err != nil || len(entries) > 0 {
		return
	}
	if err := unix.Mount(protocol.Library, protocol.LibraryDir, "", unix.MS_BIND, ""); err != nil {
		return
	}
	const ro = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("", protocol.LibraryDir, "", ro, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// ask has a standIn at the other end of conn do what a line says, and returns
// what it answers, trimmed.
func ask(conn io.ReadWriter, line string) (string, error) {
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	var n int
	// Byte by byte, for nothing may be read that is not this answer.
	var head []byte
	for b := make([]byte, 1); ; {
		if _, err := conn.Read(b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			break
		}
		head = append(head, b[0])
	}
	if _, err := fmt.Sscanf(string(head), "%d", &n); err != nil {
		return "", fmt.Errorf("odd answer %q: %w", head, err)
	}
	var out bytes.Buffer
	for out.Len() < n {
		b := make([]byte, n-out.Len())
		k, err := conn.Read(b)
		if err != nil {
			return "", err
		}
		out.Write(b[:k])
	}
	return strings.TrimSpace(out.String()), nil
}

func obey(line string) string {
	builtin, ok := strings.CutPrefix(line, "!")
	if ok {
		return obeyBuiltin(strings.Fields(builtin))
	}
	command, asUser := strings.CutPrefix(line, "user:")
	cmd := exec.Command("/bin/bash", "-c", command)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"}
	if asUser {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: protocol.CommandUID, Gid: protocol.CommandUID}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = append(out, []byte("["+err.Error()+"]")...)
	}
	return string(out)
}

func obeyBuiltin(f []string) string {
	switch f[0] {
	case "dial": // network address
		c, err := net.Dial(f[1], f[2])
		if err == nil && f[1] == "udp" {
			_, err = c.Write([]byte("x"))
		}
		if err != nil {
			return "error: " + err.Error()
		}
		return "connected"
	case "interfaces":
		is, err := net.Interfaces()
		if err != nil {
			return "error: " + err.Error()
		}
		var names []string
		for _, i := range is {
			names = append(names, i.Name)
		}
		return strings.Join(names, " ")
	case "open": // path, for reading and writing
		fd, err := unix.Open(f[1], unix.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			return "error: " + err.Error()
		}
		unix.Close(fd)
		return "opened"
	case "remount": // path, for writing
		if err := unix.Mount("", f[1], "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
			return "error: " + err.Error()
		}
		return "remounted"
	case "mknod": // a block device of the host's first disk
		if err := unix.Mknod(f[1], unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0))); err != nil {
			return "error: " + err.Error()
		}
		return "made"
	case "eat": // MiB
		var n int
		fmt.Sscan(f[1], &n)
		for range n {
			b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				return "error: " + err.Error()
			}
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
		}
		return "eaten"
	case "exit":
		os.Exit(7)
	case "hang": // when the input has ended too, as a broken agent might
		for {
			_ = unix.Pause()
		}
	case "complain":
		fmt.Fprintln(os.Stderr, strings.Join(f[1:], " "))
		return ""
	}
	return "error: no such builtin"
}
