package sources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Consent is what a publisher agrees to besides the source itself.
type Consent struct {
	// WithMemory allows files of the space's memory in the source.
	WithMemory bool `json:"with_memory"`
	// New refuses an ID that exists, even one of the publisher's own sources. If New is
	// false, publishing the same directory again changes the existing source.
	New bool `json:"new"`
}

// Limits of an ID, and of the users that a publisher names as readers.
const (
	MaxIDBytes = 40
	MaxUsers   = 200
)

// memoryDir holds what AIs remember about a person.
const memoryDir = "memory"

var idForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`)

// reserved lists IDs that have another meaning where sources are named.
var reserved = []string{"space", "library", "docs", "youtube", "all", "none", "publish", "sources"}

// CheckID checks that an ID may name a source. The error is a fault.Invalid.
func CheckID(id string) error {
	switch {
	case id == "":
		return fault.New(fault.Invalid, "Enter an ID for the source.").In(space.SourceName)
	case len(id) < 2 || len(id) > MaxIDBytes || !idForm.MatchString(id):
		return fault.New(fault.Invalid, "The ID of a source has 2 to %d lowercase letters, digits and hyphens, and neither begins nor ends with a hyphen.", MaxIDBytes).In(space.SourceName)
	case slices.Contains(reserved, id):
		return fault.New(fault.Invalid, "The ID %q has another meaning here. Choose another ID.", id).In(space.SourceName)
	}
	return nil
}

// checked validates a source and returns it with its texts and directory as they are
// stored. The error is a fault.Invalid.
func checked(s space.Source, withMemory bool) (space.Source, error) {
	if err := CheckID(s.ID); err != nil {
		return s, err
	}
	for _, f := range s.Fields() {
		*f.Text = oneLine(*f.Text)
		if n := utf8.RuneCountInString(*f.Text); n > f.Max {
			return s, fault.New(fault.Invalid, "The %s has %d characters, and %d are allowed.", f.Name, n, f.Max).In(f.Name)
		}
	}
	if s.Title == "" {
		s.Title = s.ID
	}
	dir := strings.Trim(string(s.Dir), "/")
	if s.Dir = ""; dir != "" && dir != "." {
		var err error
		if s.Dir, err = space.ParsePath(dir); err != nil {
			return s, fault.Wrap(err, fault.CodeOf(err), "%s", fault.PublicOf(err)).In(space.SourceDir)
		}
	}
	if hasMemory(s.Dir) && !withMemory {
		return s, fault.New(fault.Invalid, "%s, where your AIs keep what they know about you. Choose another directory, or confirm that readers may see it.", includes(s.Dir)).In(space.SourceMemory)
	}
	if s.Everybody {
		s.Users = nil
	}
	s.Users = slices.DeleteFunc(slices.Clone(s.Users), func(u space.UserID) bool { return u == s.By })
	slices.Sort(s.Users)
	s.Users = slices.Compact(s.Users)
	if len(s.Users) > MaxUsers {
		return s, fault.New(fault.Invalid, "A source can have %d readers by name. Publish it for everybody instead.", MaxUsers).In(space.SourceReaders)
	}
	return s, nil
}

// hasMemory reports whether a directory can contain files of the space's memory.
func hasMemory(dir space.Path) bool {
	return dir == "" || dir == memoryDir || strings.HasPrefix(string(dir), memoryDir+"/")
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

// oneLine converts a person's text to a single line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1 // otherwise two titles could look the same
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// NotThere returns the error for a source that does not exist or that the caller may not
// see. The two cases must look the same.
func NotThere(id string) error {
	if CheckID(id) != nil {
		return fault.New(fault.NotFound, "There is no such source.")
	}
	return fault.New(fault.NotFound, "There is no source %q.", id)
}
