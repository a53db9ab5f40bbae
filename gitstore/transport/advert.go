package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"satchel/gitstore/commits"
	"satchel/internal/space"
)

// errNoGit means that the answer is not git's protocol.
var errNoGit = errors.New("not git's smart protocol")

// errContradiction means that a list of refs contradicts itself. Another attempt may get a correct
// list.
var errContradiction = errors.New("HEAD names a branch that is not in the list")

// remoteError is an ERR line, with which a remote explains a refusal.
type remoteError struct{ text string } // as received: up to maxPacket bytes

func (e *remoteError) Error() string { return "the remote says: " + e.text }

const (
	maxPacket   = 65520 // gitprotocol-common(5)
	zeroCommit  = space.CommitID("0000000000000000000000000000000000000000")
	headsPrefix = "refs/heads/"
)

// readPacket reads one pkt-line. flush reports a flush packet, which ends a section.
func readPacket(r io.Reader, buf []byte) (line []byte, flush bool, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, false, err
	}
	n, err := strconv.ParseUint(string(size[:]), 16, 16)
	switch {
	case err != nil:
		return nil, false, errNoGit
	case n == 0:
		return nil, true, nil
	case n < 4 || n > maxPacket: // 1 to 3 only exist in protocol 2, which was not requested
		return nil, false, errNoGit
	}
	line = buf[:n-4]
	if _, err := io.ReadFull(r, line); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, false, err
	}
	return line, false, nil
}

// parseAdvertised reads the answer of a remote to info/refs?service=git-upload-pack in protocol
// 0 (gitprotocol-pack(5)). The caller limits r.
func parseAdvertised(r io.Reader) (Refs, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	buf := make([]byte, maxPacket)
	next := func() (string, bool, error) {
		line, flush, err := readPacket(in, buf)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // an answer must end with a flush packet
		}
		s := strings.TrimSuffix(string(line), "\n")
		if err == nil && strings.HasPrefix(s, "ERR ") {
			return "", false, &remoteError{text: s[4:]}
		}
		return s, flush, err
	}
	refs := Refs{Heads: map[string]space.CommitID{}, Empty: true}
	first, flush, err := next()
	if err != nil {
		return Refs{}, err
	}
	if first == "# service=git-upload-pack" {
		if _, flush, err = next(); err != nil {
			return Refs{}, err
		}
		if !flush {
			return Refs{}, errNoGit
		}
		if first, flush, err = next(); err != nil {
			return Refs{}, err
		}
	}
	if flush {
		return refs, nil // old servers send this for an empty repository
	}
	line, capabilities, ok := strings.Cut(first, "\x00")
	if !ok {
		return Refs{}, errNoGit
	}
	if err := refs.capabilities(capabilities); err != nil {
		return Refs{}, err
	}
	head := space.CommitID("")
	for {
		id, name, ok := strings.Cut(line, " ")
		switch commit := space.CommitID(id); {
		case id == "shallow":
			refs.Shallow = true
		case !ok || !commit.Valid():
			return Refs{}, fmt.Errorf("%w: a line that is no ref", errNoGit)
		case name == "HEAD":
			head = commit
		case commit != zeroCommit: // the zero commit means that there are no refs
			refs.add(name, commit)
		}
		line, flush, err = next()
		if err != nil {
			return Refs{}, err
		}
		if flush {
			break
		}
	}
	if err := refs.settleDefault(head); err != nil {
		return Refs{}, err
	}
	return refs, nil
}

// add records a ref if it is a branch.
func (r *Refs) add(name string, commit space.CommitID) {
	branch, ok := strings.CutPrefix(name, headsPrefix)
	if !ok || CheckBranch(branch) != nil {
		return
	}
	// git lists each name once, so ignore a second line for a name.
	if _, has := r.Heads[branch]; !has {
		r.Heads[branch] = commit
		r.Empty = false
	}
}

func (r *Refs) capabilities(text string) error {
	for c := range strings.SplitSeq(text, " ") { // Fields would cut names at spaces that are not ASCII
		key, value, _ := strings.Cut(c, "=")
		switch key {
		case "symref":
			if target, ok := strings.CutPrefix(value, "HEAD:"+headsPrefix); ok && CheckBranch(target) == nil {
				r.Default = target
			}
		case "object-format":
			if value != "sha1" {
				return fmt.Errorf("the repository's object format is %q, and only sha1 is supported", commits.Cut(cleanLine(value), 20))
			}
		}
	}
	return nil
}

// settleDefault determines the default branch. If a remote sends only HEAD's commit, the default is
// the only branch at this commit. A remote that sends the name of HEAD's branch must also list that
// branch. Otherwise the branch was renamed meanwhile, or the answer was damaged. Using the name
// would create a branch.
func (r *Refs) settleDefault(head space.CommitID) error {
	if head == "" {
		return nil
	}
	if r.Default != "" {
		if _, ok := r.Heads[r.Default]; !ok {
			return errContradiction
		}
		return nil
	}
	for name, commit := range r.Heads {
		if commit != head {
			continue
		}
		if r.Default != "" { // several branches are at this commit
			r.Default = ""
			return nil
		}
		r.Default = name
	}
	return nil
}
