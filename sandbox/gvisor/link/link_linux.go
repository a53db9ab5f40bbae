package link

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

// Op is what a Message asks for, answers or reports.
type Op string

const (
	Configure Op = "configure"
	Start     Op = "start"
	Attach    Op = "attach"
	Stop      Op = "stop"
	Stats     Op = "stats"
	Reap      Op = "reap"
	Ended     Op = "ended" // an event from the child; the ID of its Message is zero
)

// Message is a request, the reply to the request of the same ID, or an event.
type Message struct {
	ID      uint64          `json:"id,omitempty"`
	Op      Op              `json:"op"`
	Sandbox space.SandboxID `json:"sandbox,omitempty"`

	Config *Config             `json:"config,omitempty"`
	Start  *StartRequest       `json:"start,omitempty"`
	Attach *AttachRequest      `json:"attach,omitempty"`
	Stats  *space.SandboxStats `json:"stats,omitempty"`
	Reaped int                 `json:"reaped,omitempty"`
	End    *End                `json:"end,omitempty"`
	Ready  *ReadyInfo          `json:"ready,omitempty"`
	// Error says why the request failed; empty if it succeeded.
	Error string `json:"error,omitempty"`
	// Killed says, after a failed start, whether something outside killed the sandbox.
	Killed Killed `json:"killed,omitempty"`
}

// Killed says how certain it is that something outside the sandbox ended its start.
type Killed string

const (
	KilledSeen Killed = "seen" // the exit status of a process shows that it was killed
	// KilledPerhaps means that gVisor's sentry or gofer ended before it was ready. gVisor
	// does not report how the process ended, and a sandbox that cannot run on this machine
	// ends in the same way.
	KilledPerhaps Killed = "perhaps"
)

// Config is the part of the server's options for gVisor that the child needs.
type Config struct {
	RunDir        string   `json:"run_dir"`
	Agent         string   `json:"agent"`
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

// StartRequest asks for a sandbox that has no space yet.
type StartRequest struct {
	Limits space.Limits `json:"limits"`
}

// AttachRequest gives a sandbox the directories of a space.Checkout, once. Git and
// Library may be empty.
type AttachRequest struct {
	Lower   string `json:"lower"`
	Git     string `json:"git"`
	Library string `json:"library"`
}

// ReadyInfo reports what the child found.
type ReadyInfo struct {
	Cgroups string `json:"cgroups"` // "v1", "v2" or why there are none
}

// End reports how a sandbox ended.
type End struct {
	Stopped     bool   `json:"stopped"`       // a stop request ended it
	OutOfMemory bool   `json:"out_of_memory"` // it exceeded its memory limit
	Killed      bool   `json:"killed"`        // something outside the sandbox killed it
	Detail      string `json:"detail"`        // how the process of the sentry ended
}

// Link is one end of the socket pair. Sends may be concurrent; one goroutine
// receives.
type Link struct {
	conn *net.UnixConn
	mu   sync.Mutex // held while sending
}

// New returns the Link over f, one of the files of Pair. It takes ownership of f.
func New(f *os.File) (*Link, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("using the runtime's socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("the runtime's socket is not a Unix socket")
	}
	return &Link{conn: u}, nil
}

// Close ends the link; the other end receives io.EOF.
func (l *Link) Close() error { return l.conn.Close() }

// CloseWrite ends the sending: the other end receives io.EOF after everything that was sent.
// This end can still receive.
func (l *Link) CloseWrite() error { return l.conn.CloseWrite() }

// Send sends a message with its files. The caller still owns the files and closes them.
func (l *Link) Send(m Message, files ...*os.File) error {
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
	// The other end always reads. If it has not read within sendTimeout, it is broken.
	_ = l.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	n, _, err := l.conn.WriteMsgUnix(b, oob, nil)
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// Receive returns the next message and its files, which the caller closes. It returns
// io.EOF if the other end is gone.
func (l *Link) Receive() (Message, []*os.File, error) {
	b := make([]byte, maxMessage+1)
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := l.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return Message{}, nil, err
	}
	files, err := parseFiles(oob[:oobn])
	if err != nil {
		return Message{}, nil, err
	}
	if n == 0 && oobn == 0 {
		return Message{}, nil, io.EOF
	}
	var m Message
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || n > maxMessage {
		err = errors.New("a message is too long")
	} else if err = json.Unmarshal(b[:n], &m); err != nil {
		err = fmt.Errorf("a message is malformed: %w", err)
	}
	if err != nil {
		CloseAll(files)
		return Message{}, nil, err
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
			CloseAll(files)
			return nil, fmt.Errorf("reading passed files: %w", err)
		}
		for _, fd := range fds {
			// Go sets MSG_CMSG_CLOEXEC on every receive.
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

// CloseAll closes the files of a message.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Pair returns both ends of a new link, as files for New.
func Pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "runtime"), os.NewFile(uintptr(fds[1]), "runtime"), nil
}
