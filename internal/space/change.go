package space

import (
	"errors"
	"time"
)

// Mode is the kind of a file in a space. Like git, a space keeps no other permissions.
type Mode uint8

// The modes.
const (
	Regular Mode = iota
	Executable
	Symlink // the content is the target
)

// Op says what a change does to its path.
type Op uint8

// The operations. A rename is a Delete and a Write in one change set.
const (
	Write Op = iota
	Delete
)

// Change is one entry of a change set.
type Change struct {
	// Path is as the writer sent it, so it can hold any bytes. The Committer checks it, and
	// lists a refused path in Commit.Rejected.
	Path    string `json:"path"`
	Op      Op     `json:"op"`
	Mode    Mode   `json:"mode"`
	Content []byte `json:"content"` // of a Write; a Symlink's target
	// Base is the blob that the change was made from; empty if the writer
	// saw no file there.
	Base BlobID `json:"base"`
	// BaseMode is the mode of the file with Base. It distinguishes a change of only the
	// mode from no change.
	BaseMode Mode `json:"base_mode"`
}

// Policy says what to do with an entry whose base is not the current content at its path.
type Policy uint8

const (
	// RefuseStale commits nothing of the change set and returns a fault.Conflict. It is for
	// a person or a tool that edits one file and can read it again (write, edit, the web).
	RefuseStale Policy = iota
	// KeepBoth leaves head's version at the path and writes the change next to it as
	// name.conflict-<commit>.ext. It is for writers that cannot decide (bash, sync). A
	// stale delete is dropped and reported.
	KeepBoth
)

// ChangeSet is what a writer passes to a Committer.
type ChangeSet struct {
	Changes []Change
	Policy  Policy
}

// Person is a commit's author.
type Person struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Server returns the author of what the server does by itself, such as a sync.
func Server() Person { return Person{Name: "Satchel", Email: "satchel@localhost"} }

// Meta describes how a commit was made.
type Meta struct {
	Author Person
	// Message is the caller's comment. If it is empty, the message is a summary of the
	// paths.
	Message string
	// Tool and Client made the change. They become the trailers Satchel-Tool and
	// Satchel-Client, so that people can find and revert the changes of a tool or a client.
	Tool   string
	Client string
	// Time is the commit's time; zero means now.
	Time time.Time
}

// FileStatus says what a commit did to a file.
type FileStatus byte

// The statuses, with git's letters.
const (
	Added    FileStatus = 'A'
	Modified FileStatus = 'M'
	Deleted  FileStatus = 'D'
)

// MarshalText writes the letter.
func (s FileStatus) MarshalText() ([]byte, error) { return []byte{byte(s)}, nil }

// UnmarshalText reads a letter.
func (s *FileStatus) UnmarshalText(b []byte) error {
	if len(b) != 1 {
		return errors.New("a status is one letter")
	}
	*s = FileStatus(b[0])
	return nil
}

// FileChange is one file that differs between two trees.
type FileChange struct {
	Path    Path       `json:"path"`
	Status  FileStatus `json:"status"`
	Old     BlobID     `json:"old,omitempty"` // empty if Added
	New     BlobID     `json:"new,omitempty"` // empty if Deleted
	OldMode Mode       `json:"old_mode"`
	NewMode Mode       `json:"new_mode"`
	Size    int64      `json:"size"` // of the new content, in bytes
}

// CommentPath is the path of a Rejection or a Warning about the commit's message.
const CommentPath = "(comment)"

// Rejection is an entry that was not committed, with the reason. The rest of the change set
// was committed.
type Rejection struct {
	Path string `json:"path"` // as the writer sent it; quote it before showing it
	Why  string `json:"why"`  // a sentence for the caller
	Err  error  `json:"-"`    // a *fault.Error with a code such as fault.TooLarge
	// Lost reports that only a sandbox holds the entry, so that the entry ends with the
	// sandbox. Why says so too.
	Lost bool `json:"lost,omitempty"`
}

// Warning is an entry that was committed although something is wrong with it.
type Warning struct {
	Path string `json:"path"` // of the committed file, or CommentPath
	Why  string `json:"why"`  // a sentence for the caller, with what to do
}

// Conflict is an entry of a KeepBoth change set that met a newer head.
type Conflict struct {
	Path Path `json:"path"` // has head's version
	Kept Path `json:"kept"` // has the writer's version; empty if the writer deleted the file
	// Remote means that Path has the space's version and Kept has the remote's, because the
	// user said the fact in Path, and the fact in Kept was inferred or imported.
	Remote bool `json:"remote,omitempty"`
}

// Commit is the result of committing a change set, and an entry of a log.
type Commit struct {
	ID      CommitID  `json:"commit"`
	Parent  CommitID  `json:"parent,omitempty"` // empty for the first
	Author  Person    `json:"author"`
	Time    time.Time `json:"date"`
	Message string    `json:"message"` // subject and body, without trailers
	// Tool and Client made the commit. They are empty unless Satchel made it, because
	// anyone can write trailers into their own commits.
	Tool   string `json:"tool,omitempty"`
	Client string `json:"client,omitempty"`
	// ClaimedTool is the tool that a commit names, if Satchel is not known to have made the
	// commit. It proves nothing.
	ClaimedTool string `json:"claimed_tool,omitempty"`
	// Files is empty in a log. Rejected, Warnings and Conflicts are only set when the commit is
	// made. All four are sorted by path.
	Files     []FileChange `json:"files,omitempty"`
	Rejected  []Rejection  `json:"rejected,omitempty"`
	Warnings  []Warning    `json:"warnings,omitempty"`
	Conflicts []Conflict   `json:"conflicts,omitempty"`
	// Changed is false if nothing differed from head. ID is then head's.
	Changed bool `json:"changed"`
}
