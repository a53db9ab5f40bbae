package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
)

// The Runtime and its child exchange JSON messages over a SOCK_SEQPACKET socket
// pair, one message per packet, at most maxMessage bytes. A start request
// carries three file descriptors: process 1's standard input, output and error.

const (
	maxMessage = 64 << 10
	maxFiles   = 3

	sendTimeout = 10 * time.Second
)

type op string

const (
	opConfigure op = "configure"
	opStart     op = "start"
	opStop      op = "stop"
	opStats     op = "stats"
	opReap      op = "reap"
	opEnded     op = "ended" // from the child, unasked: ID is zero
)

// message is a request, the reply to the request of the same ID, or an event.
type message struct {
	ID      uint64          `json:"id,omitempty"`
	Op      op              `json:"op"`
	Sandbox space.SandboxID `json:"sandbox,omitempty"`

	Config *childConfig        `json:"config,omitempty"`
	Start  *startRequest       `json:"start,omitempty"`
	Stats  *space.SandboxStats `json:"stats,omitempty"`
	Reaped int                 `json:"reaped,omitempty"`
	End    *end                `json:"end,omitempty"`
	Ready  *ready              `json:"ready,omitempty"`
	// Error is why the request failed, or empty.
	Error string `json:"error,omitempty"`
	// Killed says whether something killed a failed start.
	Killed killed `json:"killed,omitempty"`
}

// killed is how certain it is that a start was ended from outside.
type killed string

const (
	killedSeen killed = "seen" // by how a process ended
	// killedPerhaps: the sentry or the gofer ended before it was ready, and gVisor does not
	// report how. One that cannot work on this machine ends in the same way.
	killedPerhaps killed = "perhaps"
)

// childConfig is the part of Options that the child needs.
type childConfig struct {
	RunDir        string   `json:"run_dir"`
	Rootfs        string   `json:"rootfs"`
	Args          []string `json:"args"`
	Platform      string   `json:"platform"`
	NoDirectFS    bool     `json:"no_directfs"`
	DirentCache   int      `json:"dirent_cache"`
	OpenFiles     int      `json:"open_files"`
	NoCgroups     bool     `json:"no_cgroups"`
	WatchInterval int64    `json:"watch_interval"` // nanoseconds
	DebugLog      string   `json:"debug_log"`
}

// startRequest is the part of a space.SandboxSpec that the child needs.
type startRequest struct {
	Lower   string       `json:"lower"`
	Git     string       `json:"git"`
	Library string       `json:"library"`
	Limits  space.Limits `json:"limits"`
}

// ready reports what the child found.
type ready struct {
	Cgroups string `json:"cgroups"` // "v1", "v2" or why there are none
}

// end reports how a sandbox ended.
type end struct {
	Stopped     bool   `json:"stopped"`       // by a stop request
	OutOfMemory bool   `json:"out_of_memory"` // its memory limit
	Killed      bool   `json:"killed"`        // something outside killed it
	Detail      string `json:"detail"`        // else: how
}

// link is one end of the socket pair. Sends may be concurrent; one goroutine
// receives.
type link struct {
	conn *net.UnixConn
	mu   sync.Mutex // held while sending
}

// newLink takes ownership of f.
func newLink(f *os.File) (*link, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("using the runtime's socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("the runtime's socket is no Unix socket")
	}
	return &link{conn: u}, nil
}

func (l *link) close() error { return l.conn.Close() }

func (l *link) send(m message, files ...*os.File) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too long", len(b))
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The other end always reads; if it does not, it is broken.
	_ = l.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	n, _, err := l.conn.WriteMsgUnix(b, oob, nil)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// receive returns the next message and its files, which the caller closes. It returns
// io.EOF if the other end is gone.
func (l *link) receive() (message, []*os.File, error) {
	b := make([]byte, maxMessage+1)
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := l.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return message{}, nil, err
	}
	files, err := parseFiles(oob[:oobn])
	if err != nil {
		return message{}, nil, err
	}
	if n == 0 && oobn == 0 {
		return message{}, nil, io.EOF
	}
	var m message
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || n > maxMessage {
		err = errors.New("a message is too long")
	} else if err = json.Unmarshal(b[:n], &m); err != nil {
		err = fmt.Errorf("a message is malformed: %w", err)
	}
	if err != nil {
		closeAll(files)
		return message{}, nil, err
	}
	return m, files, nil
}

func parseFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("reading passed files: %w", err)
	}
	var files []*os.File
	for _, m := range msgs {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("reading passed files: %w", err)
		}
		for _, fd := range fds {
			// Go sets MSG_CMSG_CLOEXEC on every receive.
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// socketPair returns both ends of a new link.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "runtime"), os.NewFile(uintptr(fds[1]), "runtime"), nil
}
