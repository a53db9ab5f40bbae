package gvisor_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
)

const standInCommand = "stand-in"

// standIn is a process 1 that does what each line of its input says and answers
// with the outcome: what the runtime promises can be seen through it without
// the agent, with all the rights that the agent has.
func standIn() {
	fmt.Fprintln(os.Stderr, "stand-in ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		out := obey(in.Text())
		fmt.Printf("%d\n", len(out))
		os.Stdout.WriteString(out)
	}
}

// obey runs a line in bash as root, or as a command's user after "user:", or
// does what bash cannot after "!".
func obey(line string) string {
	builtin, ok := strings.CutPrefix(line, "!")
	if !ok {
		command, asUser := strings.CutPrefix(line, "user:")
		cmd := exec.Command("/bin/bash", "-c", command)
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"}
		if asUser {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agent.CommandUID, Gid: agent.CommandUID}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = append(out, []byte("["+err.Error()+"]")...)
		}
		return string(out)
	}
	f := strings.Fields(builtin)
	switch f[0] {
	case "dial": // network address
		c, err := net.DialTimeout(f[1], f[2], 2*time.Second)
		if err != nil {
			return "error: " + err.Error()
		}
		if f[1] == "udp" {
			if _, err := c.Write([]byte("x")); err != nil {
				return "error: " + err.Error()
			}
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
	case "complain":
		fmt.Fprintln(os.Stderr, strings.Join(f[1:], " "))
		return ""
	}
	return "error: no such builtin"
}

// serverRunDir names the run directory in the environment of a test binary that
// is to be a server: it starts a sandbox, says so and waits to be killed.
const serverRunDir = "SATCHEL_TEST_SERVER_RUN_DIR"

func serve(dir string) int {
	opt := gvisor.Options{RunDir: dir + "/run", Args: []string{agent.Exe, standInCommand}}
	if raceEnabled {
		opt.Exe = os.Getenv(staticBinary)
	}
	r, err := gvisor.New(opt)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := r.Start(context.Background(), space.SandboxSpec{
		ID: newID(), Seed: &space.Seed{Checkout: dir + "/checkout"},
		Limits: space.Limits{Memory: 1 << 30},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	<-s.Done()
	fmt.Println("ended:", s.Err())
	return 0
}
