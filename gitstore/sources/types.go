package sources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Kind says where a source comes from.
type Kind string

// KindSpace is a directory of a space that its owner published.
const KindSpace Kind = "space"

// State is how a source stands.
type State string

// The states.
const (
	Ready   State = "ready"   // the snapshot shows the space's head
	Waiting State = "waiting" // no snapshot was made yet, or a newer one is to be made
	Failed  State = "failed"  // the last snapshot could not be made; the one before is shown
)

// Source is a published source.
type Source struct {
	// ID names it on the whole server; it is the last name of its directory.
	ID          string
	Label       string
	Description string
	Kind        Kind
	Space       space.SpaceID
	Dir         space.Path // what of the space is published; empty: all
	// Everybody tells that all users of the server may read it; else Users may,
	// and whoever published it.
	Everybody bool
	Users     []space.UserID
	By        space.UserID
	Published time.Time
	Changed   time.Time // its description or audience

	// Collection is what search and reads call its snapshots. It is another one
	// for every publication, so that nothing of a former one is ever taken for this.
	Collection space.SpaceID
	// Commit is what the snapshot shows; empty: there is none yet.
	Commit space.CommitID
	Synced time.Time // when the space was last looked at with success
	Files  int
	Bytes  int64
	State  State
	Error  string // for people, of a Failed one
}

// Mount is where the source is in the library.
func (s Source) Mount() string { return Mount + s.ID }

// Mount is the directory of all sources of documents.
const Mount = "/library/docs/"

// readers tells whether the audience has the user.
func (s *Source) has(u space.UserID) bool {
	return s.Everybody || u == s.By || slices.Contains(s.Users, u)
}

// Request is what somebody asks to publish, or to change.
type Request struct {
	ID          string
	Label       string // empty: the id
	Description string
	Space       space.SpaceID
	Dir         string
	Everybody   bool
	Users       []space.UserID
	By          space.UserID
	// WithMemory is the publisher's word that the space's memory is to be shown.
	WithMemory bool
	// New refuses a name that is there already, whatever it publishes; else who
	// published a directory under it changes how that is done.
	New bool
}

// The parts of a request that an error names (see fault.PartOf).
const (
	PartName        = "name"
	PartTitle       = "title"
	PartDescription = "description"
	PartDir         = "dir"
	PartReaders     = "readers"
	PartMemory      = "memory"
)

// Bounds of what people write.
const (
	MaxIDBytes     = 40
	MaxLabel       = 80  // characters
	MaxDescription = 300 // characters
	MaxUsers       = 200
)

// memoryDir holds what AIs remember of a person.
const memoryDir = "memory"

var idForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`)

// reserved are ids that mean something else where sources are named.
var reserved = []string{"space", "library", "docs", "youtube", "all", "none", "publish", "sources"}

// CheckID checks that an id may name a source. The error is a fault.Invalid.
func CheckID(id string) error {
	switch {
	case id == "":
		return fault.New(fault.Invalid, "The source needs a name.").In(PartName)
	case len(id) < 2 || len(id) > MaxIDBytes || !idForm.MatchString(id):
		return fault.New(fault.Invalid, "The name of a source has 2 to %d small letters, digits and hyphens, and begins and ends with none of the last.", MaxIDBytes).In(PartName)
	case slices.Contains(reserved, id):
		return fault.New(fault.Invalid, "The name %q means something else here. Choose another one.", id).In(PartName)
	}
	return nil
}

// checked returns the request as it is stored. The error is a fault.Invalid.
func (r Request) checked() (Request, space.Path, error) {
	if err := CheckID(r.ID); err != nil {
		return r, "", err
	}
	for _, f := range []struct {
		name string
		text *string
		max  int
	}{{PartTitle, &r.Label, MaxLabel}, {PartDescription, &r.Description, MaxDescription}} {
		*f.text = oneLine(*f.text)
		if n := utf8.RuneCountInString(*f.text); n > f.max {
			return r, "", fault.New(fault.Invalid, "The %s has %d characters, and %d are allowed.", f.name, n, f.max).In(f.name)
		}
	}
	if r.Label == "" {
		r.Label = r.ID
	}
	var dir space.Path
	if d := strings.Trim(r.Dir, "/"); d != "" && d != "." {
		var err error
		if dir, err = space.ParsePath(d); err != nil {
			return r, "", fault.Wrap(err, fault.CodeOf(err), "%s", fault.PublicOf(err)).In(PartDir)
		}
	}
	if (dir == "" || dir == memoryDir || strings.HasPrefix(string(dir), memoryDir+"/")) && !r.WithMemory {
		return r, "", fault.New(fault.Invalid, "%s, where your AIs keep what they know about you. Choose another directory, or say that it is to be shown.", includes(dir)).In(PartMemory)
	}
	if r.Everybody {
		r.Users = nil
	}
	r.Users = slices.Clone(r.Users)
	slices.Sort(r.Users)
	r.Users = slices.Compact(r.Users)
	if len(r.Users) > MaxUsers {
		return r, "", fault.New(fault.Invalid, "A source can be published for %d people by name; publish it for everybody instead.", MaxUsers).In(PartReaders)
	}
	return r, dir, nil
}

func includes(dir space.Path) string {
	if dir == "" {
		return "The whole space includes " + memoryDir + "/"
	}
	if dir == memoryDir {
		return "This is " + memoryDir + "/"
	}
	return fmt.Sprintf("%s/ is in %s/", dir, memoryDir)
}

// oneLine makes what people write fit to stand in a line of ours.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1 // a label that looks like another is none
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// NotThere is the error for a source that there is not, and for one that is none
// of the asker's business, which must not be told apart.
func NotThere(id string) error {
	if CheckID(id) != nil {
		return fault.New(fault.NotFound, "There is no such source.")
	}
	return fault.New(fault.NotFound, "There is no source %q.", id)
}
