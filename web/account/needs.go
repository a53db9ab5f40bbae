package account

import (
	"context"
	"time"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// unusedAfter is the age from which a key that no client has used needs attention.
const unusedAfter = 7 * 24 * time.Hour

// need is something that waits for the person.
type need struct {
	Icon, Title, Text, URL, Do string
	Bad                        bool // something does not work until the person acts
}

// known counts what is in a space. It changes only with a new commit or a new day.
type known struct {
	Facts, Proposed, Expired, Damaged int
	Conflicts                         int // conflict copies that nobody has merged
	Conflict                          space.Path
}

type knownKey struct {
	space space.SpaceID
	at    space.CommitID
	day   string
}

// cachedKnown limits the entries of the cache of counts, and of the cache of weeks.
const cachedKnown = 500

// knownKeyOf returns the key of a space's current state in the caches.
func (s *pages) knownKeyOf(ctx context.Context, m service.View) (knownKey, error) {
	at, err := m.Head(ctx)
	return knownKey{m.ID, at, s.Now().UTC().Format(time.DateOnly)}, err
}

// knownOf counts what is in a space.
func (s *pages) knownOf(ctx context.Context, m service.View) (known, error) {
	key, err := s.knownKeyOf(ctx, m)
	if err != nil {
		return known{}, unlessEmpty(err)
	}
	if k, ok := s.known.Get(key); ok {
		return k, nil
	}
	var k known
	all, err := m.Memory(ctx, key.at)
	if err != nil {
		return known{}, err
	}
	for _, f := range all.Facts {
		switch {
		case space.IsConflictCopy(f.Path):
			continue // counted below
		case f.Problem != "":
			k.Damaged++
			continue
		case f.Expired:
			k.Expired++
		case f.Source == facts.Inferred:
			k.Proposed++
		}
		k.Facts++
	}
	files, err := m.Files(ctx, key.at, "")
	if err != nil {
		return known{}, err
	}
	for _, f := range files {
		if !space.IsConflictCopy(f.Path) {
			continue
		}
		if k.Conflicts++; k.Conflict == "" {
			k.Conflict = f.Path
		}
	}
	s.known.Add(key, k)
	return k, nil
}

// needsOf lists what needs the attention of the person: first the changes to confirm in any
// space, then the problems of the page's space, the most urgent first. An unused key and
// sources that cannot be updated come last.
func (s *pages) needsOf(v *web.Visit, h homePage, clients []client) (out []need, err error) {
	for _, w := range h.Waiting {
		name := web.Shorten(w.Name, 60)
		if w.Role != space.Owner {
			name += " of " + w.OwnerLabel()
		}
		out = append(out, need{"eye", web.Plural(w.Files, "1 change to confirm", "%d changes to confirm"), "An AI changed the instructions of all AIs in the space " + name + ".", "/spaces/" + string(w.ID) + "/reviews", "Review", false})
	}
	if h.Space != nil && h.Space.Role != space.Reader {
		base := "/spaces/" + string(h.Space.ID)
		k := h.Known
		if h.Wrong != "" {
			out = append(out, need{"circle-alert", h.Wrong, h.Way + " Changes by your clients are kept on this server.", base + "/github", "Fix the connection", true})
		} else if h.Push.Problem != "" { // Problem stays set while the server tries again
			out = append(out, need{"circle-alert", "The last push failed", h.Push.Detail, base + "/remote", "See what to do", true})
		}
		if h.Held > 0 {
			out = append(out, need{"circle-alert", web.Plural(h.Held, "1 file is held back", "%d files are held back"), "A held-back file is not saved. It may contain a key, or break a rule.", base + "/remote#held", "See why", true})
		}
		if k.Conflicts > 0 {
			out = append(out, need{"git-merge", web.Plural(k.Conflicts, "1 conflict", "%d conflicts"), "If a file is changed twice at the same time, both versions are kept.", web.PageURL(h.Space.ID, "files", k.Conflict, ""), "Merge the versions", false})
		}
		if k.Damaged > 0 {
			out = append(out, need{"bookmark", web.Plural(k.Damaged, "1 fact file is damaged", "%d fact files are damaged"), "Your AIs cannot read such a file as a fact.", base + "/memory#damaged", "Repair", false})
		}
		if k.Proposed > 0 {
			out = append(out, need{"bookmark", web.Plural(k.Proposed, "1 proposed fact", "%d proposed facts"), web.Plural(k.Proposed, "An AI inferred this fact. Confirm or forget it.", "Your AIs inferred these facts. Confirm what is true, and forget the rest."), base + "/memory", "Review", false})
		}
	}
	for _, c := range clients {
		if c.isKey() && c.LastUsed.IsZero() && s.Now().Sub(c.Created) > unusedAfter {
			out = append(out, need{"key-round", "The key “" + web.Shorten(c.Name, 40) + "” was never used", "Use the key in a client, or revoke it.", "/account/keys", "See your keys", false})
			break
		}
	}
	failing, err := s.Service.CountFailedSyncs(v.R.Context(), v.Actor(), service.None{})
	if err != nil {
		return nil, err
	}
	if failing > 0 {
		out = append(out, need{"library", web.Plural(failing, "1 source cannot be updated", "%d sources cannot be updated"), "Readers see the last complete version.", "/library", "See the sources", true})
	}
	return out, nil
}

// unlessEmpty returns an error, or nil if the error says that the space has no commits.
func unlessEmpty(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}
