package rootfs

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
)

// DefaultSuite is the Debian release that a root file system is made of.
const DefaultSuite = "bookworm"

// DefaultPackages returns what a root file system has beside Debian's essential
// packages (bash, coreutils, diffutils, findutils, grep, gzip, mawk, sed, tar,
// util-linux and the like).
func DefaultPackages() []string {
	return []string{
		"bc", "bsdextrautils", "bzip2", "file", "git", "jq", "less", "patch", "procps",
		"python3", "ripgrep", "tree", "tzdata", "unzip", "xxd", "xz-utils", "zip",
	}
}

// Options say what to build. Dir is required; every other zero field takes the
// default that its comment names.
type Options struct {
	Dir     string   // where it goes; its parent must exist
	Suite   string   // Debian's release; default DefaultSuite
	Mirror  string   // an http or https URL; default: what the machine's own apt uses
	Include []string // packages beside DefaultPackages
	// Replace puts it in the place of an existing directory, which is kept as
	// Dir.old; without it an existing directory is refused.
	Replace bool
	// Epoch is the newest time that a file in it may have, from
	// SOURCE_DATE_EPOCH; zero: times stay as they are.
	Epoch time.Time
	// AptDir is where the machine's apt is configured; default /etc/apt.
	AptDir string
	// Keyring holds the keys that the archive must be signed with; default
	// Debian's, from the package debian-archive-keyring.
	Keyring string
	// Environ is where the programs take PATH and the variables of a proxy from.
	Environ []string
	// KillTime is how long a program that is interrupted may take to clean up
	// before it is killed; default 10 s.
	KillTime time.Duration
	// Progress, which may be nil, is told what happens: the stages of the work,
	// and as details the single steps of each. It must not block.
	Progress func(line string, detail bool)
	// Check runs sandboxes over a finished directory before it is put in place
	// and returns what it found, such as the versions of programs; see Try. Nil:
	// nothing is checked.
	Check func(dir string) ([]string, error)
}

// Package is one of Debian's.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Result is what was built.
type Result struct {
	Dir      string
	Suite    string
	Mirror   string // without credentials
	Tool     string // the program that made it
	Security bool   // whether security updates came with it
	Packages []Package
	Unpacked int64 // bytes before stripping
	Size     int64 // bytes of all files
	Files    int
	// Digest is over every name, kind, mode, link and content, but no time: two
	// builds with one digest are the same to a sandbox.
	Digest string
	Found  []string // what Options.Check returned
	Kept   string   // where what was replaced is now; may be empty
	Took   time.Duration
}

// suiteName is ^[a-z][a-z0-9-]{0,40}$, without the price of compiling that in
// every process.
func suiteName(s string) bool {
	return 1 <= len(s) && len(s) <= 41 && isLower(s[0]) && allAre(s[1:], "-")
}

// packageName is, likewise, ^[a-z0-9][a-z0-9+.-]{1,100}$.
func packageName(s string) bool {
	return 2 <= len(s) && len(s) <= 101 && allAre(s[:1], "") && allAre(s[1:], "+.-")
}

// allAre tells whether all bytes of s are lower letters, digits or of others.
func allAre(s, others string) bool {
	for _, b := range []byte(s) {
		if !isLower(b) && (b < '0' || b > '9') && strings.IndexByte(others, b) < 0 {
			return false
		}
	}
	return true
}

func isLower(b byte) bool { return 'a' <= b && b <= 'z' }

// Validate says what is wrong with the options, as fault.Invalid, before
// anything is done. Build does the same.
func (o Options) Validate() error {
	_, err := o.withDefaults()
	return err
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, fault.New(fault.Invalid, "Name the directory to build.")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, err
	}
	if o.Dir = dir; dir == filepath.Dir(dir) {
		return o, fault.New(fault.Invalid, "%s cannot be built: name a directory that does not exist yet.", dir)
	}
	if o.Suite == "" {
		o.Suite = DefaultSuite
	}
	if !suiteName(o.Suite) {
		return o, fault.New(fault.Invalid, "%q is no name of a Debian release; bookworm is one.", o.Suite)
	}
	for _, p := range o.Include {
		if !packageName(p) {
			return o, fault.New(fault.Invalid, "%q is no name of a Debian package.", p)
		}
	}
	if o.Mirror = lowerScheme(o.Mirror); o.Mirror != "" {
		if !usable(o.Mirror) {
			named := "That"
			if !strings.Contains(o.Mirror, "@") { // before it there may be a password
				named = strconv.Quote(o.Mirror)
			}
			return o, fault.New(fault.Invalid, "%s is no mirror: name an http or https URL.", named)
		}
		if _, err := netrc(o.Mirror); err != nil {
			return o, err
		}
	}
	if o.AptDir == "" {
		o.AptDir = "/etc/apt"
	}
	if o.Keyring == "" {
		o.Keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	}
	if o.KillTime == 0 {
		o.KillTime = 10 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string, bool) {}
	}
	return o, nil
}

// packages are all that is asked for, each once.
func (o Options) packages() string {
	all := append(DefaultPackages(), o.Include...)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}
