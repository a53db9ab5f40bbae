package syncs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"satchel/gitstore/sources"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Setting says what a source follows, and how often.
type Setting struct {
	// Kind and Settings describe the upstream. If URL, an address that a person pasted, is set,
	// Resolve derives the settings from URL, and the kind, too, if Kind is empty. Settings has
	// further settings then.
	Kind     string          `json:"kind,omitempty"`
	URL      string          `json:"url,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	// Every is the interval between syncs in seconds. Nil means the default. 0 means that the
	// source syncs on request only.
	Every *int64 `json:"every,omitempty"`
	// Paused stops or resumes the schedule of a source. Nil changes nothing.
	Paused *bool `json:"paused,omitempty"`
	// Trusted allows addresses in private networks, and directories of this machine.
	Trusted bool             `json:"-"`
	Origin  space.SyncOrigin `json:"-"`
	// By is the person for whom Preview reads private repositories; it is empty for the operator.
	By space.UserID `json:"-"`
}

// Resolve returns the setting with its Kind, and with the defaults of its Settings filled in.
// The error is a fault.Invalid that names the wrong setting.
func Resolve(s Setting) (Setting, error) {
	var u upstream.Upstream
	var err error
	switch {
	case s.Kind == "":
		var k upstream.Kind
		if k, u, err = upstream.Recognize(s.URL); err != nil {
			return s, err
		}
		s.Kind = k.Name
		u, err = merged(s, u)
	case s.URL != "":
		if u, err = upstream.At(s.Kind, s.URL); err == nil {
			u, err = merged(s, u)
		}
	default:
		u, err = upstream.Open(s.Kind, s.Settings)
	}
	if err != nil {
		return s, err
	}
	s.URL = ""
	s.Settings, err = json.Marshal(u)
	return s, err
}

// Check checks a setting without using it. The error is that of EveryOf or of Resolve.
func Check(s Setting) error {
	if _, err := EveryOf(s); err != nil {
		return err
	}
	_, err := Resolve(s)
	return err
}

// merged returns an upstream that an address describes, with further settings, such as a branch.
func merged(s Setting, found upstream.Upstream) (upstream.Upstream, error) {
	if len(s.Settings) == 0 {
		return found, found.Validate()
	}
	all := map[string]json.RawMessage{}
	for _, from := range []func() ([]byte, error){
		func() ([]byte, error) { return json.Marshal(found) },
		func() ([]byte, error) { return s.Settings, nil },
	} {
		b, err := from()
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The settings of a source must be an object.")
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return upstream.Open(s.Kind, b)
}

// EveryOf returns the interval of a setting. 0 means that the source syncs on request only. The
// error is a fault.Invalid if the kind does not allow the interval.
func EveryOf(s Setting) (time.Duration, error) {
	standard, least := DefaultEvery, MinEvery
	switch s.Kind {
	case upstream.Directory:
		standard, least = WatchEvery, WatchEvery
	case upstream.Upload:
		if s.Every != nil && *s.Every != 0 {
			return 0, fault.New(fault.Invalid, "The files of this source are uploaded, so it has no interval.").In("every")
		}
		return 0, nil
	}
	if s.Every == nil {
		return standard, nil
	}
	every := time.Duration(*s.Every) * time.Second
	if every != 0 && (every < least || every > MaxEvery) {
		return 0, fault.New(fault.Invalid, "The interval between updates is %d minutes to 30 days, or 0 for updates on request only.", least/time.Minute).In("every")
	}
	return every, nil
}

// Add publishes a source whose files are in the space src.Space, which must exist. The first sync
// is due at once, except for a source of uploaded files, which syncs when its first file comes.
// The errors are those of Resolve, of EveryOf and of sources.AddSynced.
func (m *Manager) Add(ctx context.Context, src space.Source, s Setting) (space.Source, error) {
	s, err := Resolve(s)
	if err != nil {
		return space.Source{}, err
	}
	every, err := EveryOf(s)
	if err != nil {
		return space.Source{}, err
	}
	src.Kind = space.SourceKind(s.Kind)
	row := syncRow{
		SourceID: src.ID, SpaceID: string(src.Space), Kind: s.Kind, Settings: string(s.Settings), Trusted: s.Trusted, Origin: string(s.Origin),
		Every: every.Milliseconds(), State: string(space.SyncNew), Next: database.Millis(m.o.Now()),
	}
	if s.Kind == upstream.Upload {
		row.Next = 0 // the first run begins when the first file is uploaded
	}
	if err := m.storeNew(ctx, row); err != nil {
		return space.Source{}, err
	}
	if src, err = m.o.Sources.AddSynced(ctx, src); err != nil {
		return space.Source{}, errors.Join(err, m.deleteRows(context.WithoutCancel(ctx), row.SourceID))
	}
	m.mu.Lock()
	m.entries[row.SourceID] = &entry{row: row}
	m.owned[src.Space] = true
	m.mu.Unlock()
	m.rouse()
	return src, nil
}

// Change changes what a source follows, and how often. If the settings change, the source is due
// for a sync at once, unless it is paused.
func (m *Manager) Change(ctx context.Context, id string, s Setting) error {
	m.mu.Lock()
	e := m.entries[id]
	if e != nil {
		s.Kind = e.row.Kind
	}
	m.mu.Unlock()
	if e == nil {
		return sources.NotThere(id)
	}
	every, err := EveryOf(s)
	if err != nil {
		return err
	}
	var settings string
	if len(s.Settings) > 0 {
		resolved, err := Resolve(s)
		if err != nil {
			return err
		}
		settings = string(resolved.Settings)
	}
	now := m.o.Now()
	return m.alter(ctx, id, func(row *syncRow) {
		if s.Every != nil && row.Every != every.Milliseconds() {
			row.Every, row.Next = every.Milliseconds(), 0
			if row.every() > 0 {
				row.Next = database.Millis(now.Add(every))
			}
		}
		if s.Paused != nil && *s.Paused != row.Paused {
			row.Paused, row.Next = *s.Paused, 0
			if row.every() > 0 {
				row.Next = database.Millis(now) // a paused source may have missed some syncs
			}
		}
		if settings != "" && settings != row.Settings {
			row.Settings, row.Trusted, row.Version = settings, s.Trusted, ""
			if !row.Paused {
				row.Next = database.Millis(now)
			}
		}
	})
}

// Remove ends the sync of a source, and unpublishes the source. Its space stays.
func (m *Manager) Remove(ctx context.Context, id string) error {
	m.mu.Lock()
	e := m.entries[id]
	if e == nil {
		m.mu.Unlock()
		return sources.NotThere(id)
	}
	delete(m.entries, id)
	r := e.run
	m.mu.Unlock()
	if r != nil {
		r.cancel(errRemoved)
	}
	err := m.o.Sources.Remove(ctx, space.SpaceID(e.row.SpaceID), id)
	if fault.CodeOf(err) == fault.NotFound {
		err = nil // the source is no longer published
	}
	return errors.Join(err, m.deleteRows(ctx, id))
}

// Space returns the space of a source.
func (m *Manager) Space(id string) (space.SpaceID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil {
		return "", sources.NotThere(id)
	}
	return space.SpaceID(e.row.SpaceID), nil
}

// Limits of a preview.
const (
	previewFiles  = 200
	previewTitles = 10
)

// Preview returns what a source with a setting would contain. It fetches a limited number of
// files, and keeps none of them. progress reports how many files are fetched.
func (m *Manager) Preview(ctx context.Context, s Setting, progress func(space.SyncProgress)) (space.SyncPreview, error) {
	s, err := Resolve(s)
	if err != nil {
		return space.SyncPreview{}, err
	}
	u, env, done, err := m.upstream(syncRow{Kind: s.Kind, Settings: string(s.Settings), Trusted: s.Trusted, by: s.By})
	if err != nil {
		return space.SyncPreview{}, err
	}
	defer done()
	st, err := newStage("", nil, true, m.limits(), func(done, total int) {
		progress(space.SyncProgress{Step: "fetch", Done: done, Total: total})
	})
	if err != nil {
		return space.SyncPreview{}, err
	}
	st.enough, st.look = previewFiles, &look{}
	_, err = u.Fetch(ctx, env, st)
	out := space.SyncPreview{Kind: space.SourceKind(s.Kind), Settings: s.Settings, More: errors.Is(err, errEnough), Titles: []string{}}
	if err != nil && !out.More {
		return space.SyncPreview{}, err
	}
	files := st.list()
	out.SyncCounts = compare(nil, files)
	out.Files, out.Skipped = max(len(files), st.total), st.skipped
	for _, f := range files[:min(previewTitles, len(files))] {
		out.Titles = append(out.Titles, cmp.Or(f.Title, string(f.Path)))
	}
	out.Licence, out.Title = st.look.licence, suggestTitle(s.Settings)
	return out, nil
}

// DryRun returns what a sync would change. It changes nothing.
func (m *Manager) DryRun(ctx context.Context, id string, progress func(space.SyncProgress)) (space.SyncPreview, error) {
	m.mu.Lock()
	e := m.entries[id]
	m.mu.Unlock()
	if e == nil {
		return space.SyncPreview{}, sources.NotThere(id)
	}
	m.mu.Lock()
	row := e.row
	m.mu.Unlock()
	got, err := m.stageUpstream(ctx, row, "", false, true, func(done, total int) {
		progress(space.SyncProgress{Step: "fetch", Done: done, Total: total})
	})
	if err != nil {
		return space.SyncPreview{}, err
	}
	return space.SyncPreview{
		Kind: space.SourceKind(row.Kind), Settings: json.RawMessage(row.Settings), SyncCounts: got.Counts, Titles: []string{}, Changes: got.Changes,
	}, nil
}
