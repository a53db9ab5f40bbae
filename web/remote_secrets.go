package web

import (
	"encoding/hex"
	"slices"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
)

// Bounds of what looks like a secret in a space that gets a repository.
const (
	// maxFoundSecrets is how many are listed at once.
	maxFoundSecrets = 200
	// firstFound is how many are listed before the list can be folded up.
	firstFound = 20
	// maxAllowed is how many a person may say of that they are none, in all the rounds of
	// one form: as many as what is kept of it has room for (store.PutFlow).
	maxAllowed = 3000
	printBytes = 10 // of a fingerprint
)

type foundItem struct {
	service.FoundSecret
	URL string
}

// foundBody is a round of what looks like secrets: the box below the list names the
// fingerprints of what the list shows, and of nothing else.
type foundBody struct {
	First, Rest []foundItem
	Prints      string
	Count       int
	More        bool // are shown once these are dealt with
	Dealt       int  // that were shown before
	Full        bool // no more can be dealt with here
}

func foundOf(id space.SpaceID, found []service.FoundSecret, dealt int) *foundBody {
	if len(found) == 0 {
		return nil
	}
	b := &foundBody{More: len(found) > maxFoundSecrets, Dealt: dealt}
	found = found[:min(len(found), maxFoundSecrets)]
	b.Count, b.Full = len(found), dealt+len(found) > maxAllowed
	var prints []string
	for i, f := range found {
		f.Description = Shorten(f.Description, 80)
		it := foundItem{f, PageURL(id, "files", f.Path, f.Commit)}
		if f.Path == "" {
			it.URL = PageURL(id, "commits", space.Path(f.Commit), "")
		}
		if i < firstFound {
			b.First = append(b.First, it)
		} else {
			b.Rest = append(b.Rest, it)
		}
		prints = append(prints, f.Fingerprint)
	}
	b.Prints = strings.Join(prints, " ")
	return b
}

// allowedIn adds to fingerprints those of a form, which a person was shown.
func allowedIn(before []string, field string) []string {
	for _, p := range strings.Fields(field) {
		if len(before) >= maxAllowed {
			break
		}
		if b, err := hex.DecodeString(p); err == nil && len(b) == printBytes && !slices.Contains(before, p) {
			before = append(before, p)
		}
	}
	return before
}

// packPrints and unpackPrints keep fingerprints in little room.
func packPrints(prints []string) (out []byte) {
	for _, p := range prints {
		b, _ := hex.DecodeString(p) // of allowedIn
		out = append(out, b...)
	}
	return out
}

func unpackPrints(b []byte) (out []string) {
	for c := range slices.Chunk(b, printBytes) {
		out = append(out, hex.EncodeToString(c))
	}
	return out
}
