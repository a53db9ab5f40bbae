package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/secretscan"
	"satchel/internal/space"
)

// Bounds of a look for suspects.
const (
	// DefaultSuspectTime is how long it lasts at most.
	DefaultSuspectTime = time.Second
	maxSuspects        = 20 // places that are named to who sets a remote
)

// Suspect is a place that may be a password that somebody uses. What it is, nobody is
// told.
type Suspect struct {
	Path space.Path `json:"path"`
	Line int        `json:"line"`
	// Print is the same wherever the line's values are, so that one that was told of is
	// known again. It leaves the server no more than they do.
	Print string `json:"-"`
}

// Suspected is what a look through the files of a space found.
type Suspected struct {
	Places []Suspect `json:"places"`
	More   int       `json:"more,omitempty"`
	// Partly tells that not all files were looked at: Looked of Files, which is 0 where
	// they could not be listed.
	Partly bool `json:"partly,omitempty"`
	Looked int  `json:"looked"`
	Files  int  `json:"files"`
}

// SuspectsIn looks through what a space holds now, for warnings before it is sent to
// where others may read it. It names so many places at most, and ends after the time
// within, 0 for the default, with what it has found. What has the form of a known secret
// is left out where it is refused anyway. What was found stands beside an error too, and
// is not all then.
func SuspectsIn(ctx context.Context, git *gitstore.Store, scan *secretscan.Scanner, id space.SpaceID, known bool, most int, within time.Duration) (Suspected, error) {
	if within == 0 {
		within = DefaultSuspectTime
	}
	look, stop := context.WithTimeout(ctx, within)
	defer stop()
	files, err := git.Files(look, id, "", "")
	if err != nil {
		return Suspected{Partly: true}, lookError(ctx, look, err)
	}
	out := Suspected{Files: len(files)}
	likelyFirst(files)
	var failed error
	for _, f := range files {
		if look.Err() != nil {
			break
		}
		b, err := git.ReadBlob(look, id, f.Blob)
		if err == nil {
			var found []secretscan.Finding
			found, err = scan.SuspectsIn(look, f.Path, b)
			out.add(f.Path, found, known, most)
		}
		if err == nil {
			out.Looked++
		} else if errors.Is(err, secretscan.ErrMore) {
			continue // not all of the file is told of, so it does not count as looked at
		} else if err = lookError(ctx, look, err); failed == nil {
			failed = err
		}
	}
	out.Partly = out.Looked < out.Files
	if failed == nil {
		failed = ctx.Err()
	}
	return out, failed
}

// lookError is what is told of an error of a look, and nil of the end of its own time.
func lookError(ctx, look context.Context, err error) error {
	if ctx.Err() == nil && look.Err() != nil {
		return nil
	}
	return err
}

func (s *Suspected) add(p space.Path, found []secretscan.Finding, known bool, most int) {
	line := 0
	var last *Suspect // of the line, where it is named
	for _, f := range found {
		switch {
		case !known && f.Rule != secretscan.RuleAssigned:
		case f.Line == line:
			if last != nil {
				sum := sha256.Sum256([]byte(last.Print + f.Fingerprint))
				last.Print = hex.EncodeToString(sum[:10])
			}
		case len(s.Places) < most:
			line = f.Line
			s.Places = append(s.Places, Suspect{p, f.Line, f.Fingerprint})
			last = &s.Places[len(s.Places)-1]
		default:
			line, last = f.Line, nil
			s.More++
		}
	}
}

// Sizes of files, in bytes, by which a look takes them in turn.
const (
	smallFile = 64 << 10
	hugeFile  = 1 << 20
)

// likelyFirst puts files in the order in which they are looked at, since a look may
// end before them all, and who writes to the space decides what stands before a
// password: configuration by its name, other small files, the rest, and huge files,
// each by path.
func likelyFirst(files []space.Entry) {
	group := func(f space.Entry) int {
		switch {
		case f.Size > hugeFile:
			return 3
		case f.Size > smallFile:
			return 2
		case configures(string(f.Path)):
			return 0
		}
		return 1
	}
	slices.SortFunc(files, func(a, b space.Entry) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(a.Path, b.Path))
	})
}

// configures tells whether a name is one of configuration's.
func configures(name string) bool {
	base := strings.ToLower(path.Base(name))
	if strings.HasPrefix(base, ".env") {
		return true
	}
	switch path.Ext(base) {
	case ".env", ".yaml", ".yml", ".toml", ".ini", ".json", ".conf", ".cfg", ".properties", ".tfvars":
		return true
	}
	return false
}

// suspects is what is told of a space that got a remote; it stops nothing.
func (l *Local) suspects(ctx context.Context, id space.SpaceID, r RemoteRequest, progress func(string)) *Suspected {
	had, has, err := l.Remotes.Get(ctx, id)
	if err != nil || r.Replace || has && had.URL == strings.TrimSpace(r.URL) {
		return nil
	}
	progress("Looking for passwords in what the space has")
	found, err := SuspectsIn(ctx, l.Git, l.Secrets, id, l.Unscreened, maxSuspects, l.SuspectTime)
	if err != nil {
		l.Logger.Warn("look for passwords in what a space has", "space", id, "err", err)
	}
	return &found
}
