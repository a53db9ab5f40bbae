package remote

import (
	"encoding/hex"
	"slices"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// Limits of the findings in a space that gets a remote. A finding is a text that looks like
// a secret.
const (
	// maxFoundSecrets is the maximum number of findings in one list.
	maxFoundSecrets = 200
	// firstFound is the number of findings above the collapsible rest of the list.
	firstFound = 20
	// maxAllowed is the maximum number of allowed findings in all rounds of a form. A flow
	// (store.PutFlow) has no room for more.
	maxAllowed = 3000
	printBytes = 10 // size of a fingerprint
)

type foundItem struct {
	service.FoundSecret
	URL string
}

// foundBody is a round of findings. The check box below the list allows the listed
// findings and no others.
type foundBody struct {
	First, Rest []foundItem
	Prints      string
	Count       int
	More        bool // another round follows
	Dealt       int  // number of findings that were allowed in earlier rounds
	Full        bool // the findings exceed maxAllowed
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
		f.Description = web.Shorten(f.Description, 80)
		it := foundItem{f, web.PageURL(id, "files", f.Path, f.Commit)}
		if f.Path == "" {
			it.URL = web.PageURL(id, "commits", space.Path(f.Commit), "")
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

// allowedIn adds the fingerprints in a form's field to those of earlier rounds.
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

// packPrints encodes fingerprints compactly. unpackPrints decodes them.
func packPrints(prints []string) (out []byte) {
	for _, p := range prints {
		b, _ := hex.DecodeString(p) // allowedIn has checked p
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
