package review

import (
	"context"
	"strconv"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/web"
	"satchel/web/render"
)

// room is the space that is left on a page for differences. some is the number of lines to
// show of a difference that does not fit.
type room struct{ lines, bytes, some int }

// reviewLink is the name and address of a waiting file.
type reviewLink struct{ Shown, URL string }

// addReviews adds the waiting files to a page: some with their differences, further ones by
// name, and links to the rest. If the page is about one file, it adds only that file.
func (s *pages) addReviews(v *web.Visit, body *reviewPage) error {
	ctx, m := v.R.Context(), body.Space
	list, behind, err := web.ReviewsIn(ctx, m)
	if err != nil {
		return err
	}
	body.Behind = behind
	if body.Only != "" {
		for _, r := range list {
			if r.Path == body.Only {
				it := s.item(ctx, m, r, &room{aloneLines, aloneBytes, 200})
				if it.Alone = ""; !it.Whole {
					it.Unshown = s.describe(ctx, m, r)
				}
				body.Reviews = append(body.Reviews, it)
			}
		}
		return nil
	}
	at, _ := strconv.Atoi(v.R.URL.Query().Get("page"))
	at = max(1, min(at, (len(list)+reviewsShown-1)/reviewsShown)) // earlier decisions may have shortened the list
	to := func(page int) string { return web.SpacePath(m.ID, "reviews?page="+strconv.Itoa(page)) }
	if at > 1 {
		body.Before = to(at - 1)
	}
	list = list[(at-1)*reviewsShown:]
	left := &room{reviewLines, reviewBytes, 20}
	for _, r := range list[:min(len(list), reviewsShown)] {
		body.Reviews = append(body.Reviews, s.item(ctx, m, r, left))
	}
	list = list[len(body.Reviews):]
	if len(list) > 0 {
		body.Next = to(at + 1)
	}
	for _, r := range list[:min(len(list), reviewsNamed)] {
		body.Others = append(body.Others, reviewLink{web.ShownPath(r.Path, web.WholePath), web.SpacePath(m.ID, "reviews?"+web.URLQuery("path", string(r.Path)))})
	}
	body.More = len(list) - len(body.Others)
	return nil
}

// itemOf returns a waiting file without its difference.
func itemOf(m service.View, r space.Review) item {
	return item{
		Path: r.Path, Shown: web.ShownPath(r.Path, web.WholePath), Blob: r.Blob, Mode: int(r.Mode), Client: web.Shorten(space.ClientName(r.Client), 60), How: web.HowMade(r.Tool), Claims: r.Tool == space.Elsewhere, When: r.When,
		Deleted: r.Blob == "", New: r.Was == "", Taken: r.Taken, URL: tools.FileURL("", m.ID, string(r.Path)), Commit: web.SpacePath(m.ID, "commits/"+string(r.Commit)),
		Edit:  web.SpaceURL(m.ID, "edit", r.Path),
		Alone: web.SpacePath(m.ID, "reviews?"+web.URLQuery("path", string(r.Path))),
	}
}

// longPatches caches the length and the beginning of each difference that is too long for a
// page with several files, so that such a difference need not be computed for each page. A blob
// never changes, so the entries stay valid.
type longPatches struct {
	of    *lru.Cache[patchKey, longPatch]
	mu    sync.Mutex
	turns map[space.SpaceID]*patchTurn // the turns of spaces in which a difference is computed
}

// patchTurn lets one caller at a time compute a difference in a space. Other callers then find the
// result in the cache.
type patchTurn struct {
	held  chan struct{}
	users int // callers that hold the turn or wait for it
}

func newLongPatches() *longPatches {
	of, _ := lru.New[patchKey, longPatch](longPatchesKept)
	return &longPatches{of: of, turns: map[space.SpaceID]*patchTurn{}}
}

// take waits for the turn of a space.
func (l *longPatches) take(ctx context.Context, id space.SpaceID) (release func(), err error) {
	l.mu.Lock()
	t := l.turns[id]
	if t == nil {
		t = &patchTurn{held: make(chan struct{}, 1)}
		l.turns[id] = t
	}
	t.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(l.turns, id)
		}
	}
	select {
	case t.held <- struct{}{}:
		return func() { <-t.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

type patchKey struct {
	space   space.SpaceID
	was, is space.BlobID
}

type longPatch struct {
	length int
	begins string
}

const (
	longPatchesKept = 256
	longPatchBegins = 32 << 10 // bytes that are kept of one difference
)

// most returns the maximum length of a patch that fits. Each line has a mark, and each hunk
// a header.
func (l *room) most() int { return l.bytes + 64*l.lines + 4<<10 }

// patch returns a difference, which the function compare computes. If the difference does not
// fit, cut is true and patch is only its beginning. If the cache already shows that it does not
// fit, compare is not called.
func (l *longPatches) patch(ctx context.Context, key patchKey, left *room, compare func() (string, error)) (patch string, cut bool, err error) {
	if known, ok := l.of.Get(key); ok && known.length > left.most() {
		return known.begins, true, nil
	}
	release, err := l.take(ctx, key.space)
	if err != nil {
		return "", false, err
	}
	defer release()
	known, ok := l.of.Get(key)
	if ok && known.length > left.most() {
		return known.begins, true, nil
	}
	if patch, err = compare(); err != nil {
		return "", false, err
	}
	begins := patch
	if len(begins) > longPatchBegins {
		begins = begins[:longPatchBegins]
		begins = strings.Clone(begins[:strings.LastIndexByte(begins, '\n')+1])
	}
	if whole := (&room{reviewLines, reviewBytes, 0}); !ok && len(patch) > whole.most() {
		l.of.Add(key, longPatch{len(patch), begins})
	}
	if len(patch) > left.most() {
		return begins, true, nil
	}
	return patch, false, nil
}

func (s *pages) item(ctx context.Context, m service.View, r space.Review, left *room) item {
	it := itemOf(m, r)
	if r.Base != "" {
		it.Compare = web.SpacePath(m.ID, "compare?"+web.URLQuery("from", string(r.Base), "path", string(r.Path)))
	}
	if r.Blob != "" && r.Mode != r.WasMode {
		it.ModeNote = map[space.Mode]string{
			space.Regular: "It is a plain file now.", space.Executable: "It is now a program that can be run.", space.Symlink: "It is now a link, and its text is the path of its target.",
		}[r.Mode]
	}
	if r.Was == r.Blob { // only the mode changed
		it.Whole, it.Alone = true, ""
		return it
	}
	patch, cut, err := s.long.patch(ctx, patchKey{m.ID, r.Was, r.Blob}, left, func() (string, error) {
		return m.FilePatch(ctx, space.FileChange{Path: r.Path, Old: r.Was, OldMode: r.WasMode, New: r.Blob, NewMode: r.Mode})
	})
	if err != nil {
		it.Problem = "The difference cannot be shown here: " + fault.PublicOf(err)
		return it
	}
	c := render.Patch(patch, render.NewBudget())
	var rows []diffLine
	n := 0
	for i, row := range c.Rows {
		d := diffLine{Text: row.HTML, Kind: map[byte]string{'+': "add", '-': "del", '@': "at"}[row.Kind]}
		if row.Kind == '@' {
			if i == 0 {
				continue
			}
			d.Text = "…"
		}
		n += len(row.HTML)
		rows = append(rows, d)
	}
	switch {
	case c.Binary || len(rows) == 0 && !cut && !(it.New && strings.Contains(patch, "\nnew file mode ")) && !(it.Deleted && strings.Contains(patch, "\ndeleted file mode ")):
		it.Problem = "It is not text, is too long to compare, or has no visible difference."
		return it
	case cut || len(rows) > left.lines || n > left.bytes || c.Cut:
		it.Problem = "The difference is longer than fits here."
		rows = rows[:min(len(rows), left.lines, left.some)]
		for n = 0; len(rows) > 0; rows = rows[:len(rows)-1] {
			n = 0
			for _, d := range rows {
				n += len(d.Text)
			}
			if n <= left.bytes {
				break
			}
		}
	default:
		it.Whole, it.Alone = true, ""
	}
	left.lines, left.bytes = left.lines-len(rows), left.bytes-n
	it.Lines = rows
	return it
}
