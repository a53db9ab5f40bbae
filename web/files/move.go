package files

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// movePage is the page that moves or deletes a file or a directory.
type movePage struct {
	Action, Back string
	Path, To     string
	Dir          bool
	Files        int // number of files to move or delete
	Names        []string
	MoreNames    int
	At           space.CommitID // the commit that the page shows
	Base         space.BlobID   // the blob of a file
	Message      string
	Crumbs       []web.Crumb
	Changed      string // the address of the changes since the visitor opened the page
}

// namesShown is how many files of a directory a page names.
const namesShown = 10

// filesUnder returns the files at or under a path. If the number of files or of directories
// is above most, the error is a fault.TooLarge.
func (s *pages) filesUnder(ctx context.Context, f found, most int) ([]space.Entry, error) {
	if !f.Dir {
		return []space.Entry{f.Entry}, nil
	}
	var out []space.Entry
	dirs := []space.Path{f.path}
	for seen := 0; len(dirs) > 0; seen++ {
		if seen > most {
			return nil, errManyFiles(most)
		}
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		list, err := f.Children(ctx, f.at, dir)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if c.Dir {
				dirs = append(dirs, c.Path)
			} else if c.Blob.Valid() {
				out = append(out, c)
			}
			if len(out) > most {
				return nil, errManyFiles(most)
			}
		}
	}
	return out, nil
}

func errManyFiles(most int) error {
	return fault.New(fault.TooLarge, "This directory has more than the %d files that can be changed at once in a page. Choose a part of it, or ask an AI.", most)
}

// movable prepares the page that moves or deletes f, and lists the files of f.
func (s *pages) movable(v *web.Visit, f found, kind string) (movePage, []space.Entry, error) {
	body := movePage{
		Action: web.SpaceURL(f.ID, kind, f.path), Back: web.SpaceURL(f.ID, "files", f.path), Crumbs: web.Location{Space: f.View, Path: f.path}.Crumbs(),
		Path: string(f.path), To: string(f.path), Dir: f.Dir, At: f.at, Base: f.Blob,
	}
	if f.Dir {
		body.Back = dirURL(f.ID, f.path)
	}
	all, err := s.filesUnder(v.R.Context(), f, s.Editing.MaxFiles)
	if err != nil {
		return body, nil, err
	}
	if len(all) == 0 {
		return body, nil, web.ErrGone
	}
	body.Files = len(all)
	for _, c := range all[:min(len(all), namesShown)] {
		body.Names = append(body.Names, strings.TrimPrefix(string(c.Path), string(f.path)+"/"))
	}
	body.MoreNames = len(all) - len(body.Names)
	return body, all, nil
}

// asSeen returns the target of a form as the page showed it. Files that were added to a
// directory since then stay where they are. If a file changed since then, the move or
// deletion fails.
func (s *pages) asSeen(v *web.Visit) (found, error) {
	f, err := s.target(v)
	if err != nil && (f.path == "" || fault.CodeOf(err) != fault.NotFound) {
		return f, err
	}
	if err != nil {
		return f, web.ErrGone
	}
	at := space.CommitID(v.R.PostFormValue("at"))
	if !at.Valid() {
		return f, web.BadForm(errNoBase)
	}
	was, ok, err := f.Find(v.R.Context(), at, f.path)
	if err != nil {
		return f, err
	}
	if !ok || was.Dir != f.Dir {
		return f, fault.New(fault.Conflict, "The content changed after you opened the page, so nothing was done. Look at it again.")
	}
	f.at, f.Entry = at, was
	return f, nil
}

func (s *pages) movePage(v *web.Visit, status int, f found, name, title string, body movePage, p *web.Problem) error {
	out := web.Page{Title: title, Space: &f.View, Current: "files", Styles: []string{"files.css", "editing.css"}, Body: &body}
	if p != nil {
		out.Problem, out.Field = p.Text, p.Field
	}
	return s.Page(v, status, name, out)
}

// name returns the name of the file or directory, in the form that titles use.
func (f found) name() string { return web.Location{Path: f.path}.Name() }

func (f found) deleteTitle() string {
	if f.Dir {
		return "Delete the directory " + f.name()
	}
	return "Delete " + f.name()
}

// showRename handles GET /spaces/{id}/rename/{path...}.
func (s *pages) showRename(v *web.Visit) error {
	f, err := s.target(v)
	if err != nil {
		return web.Gone(err)
	}
	body, _, err := s.movable(v, f, "rename")
	if err != nil {
		return err
	}
	return s.movePage(v, http.StatusOK, f, "rename", "Rename or move "+f.name(), body, nil)
}

// saveRename handles POST /spaces/{id}/rename/{path...}.
func (s *pages) saveRename(v *web.Visit) error {
	f, err := s.asSeen(v)
	if err != nil {
		return err
	}
	body, all, err := s.movable(v, f, "rename")
	if err != nil {
		return err
	}
	body.To, body.Message = strings.TrimSpace(v.R.PostFormValue("to")), message(v)
	again := func(status int, text, field string) error {
		return s.movePage(v, status, f, "rename", "Rename or move "+f.name(), body, &web.Problem{Text: text, Field: field})
	}
	to, err := space.ParsePath(strings.TrimSuffix(body.To, "/"))
	switch {
	case err != nil:
		return again(http.StatusUnprocessableEntity, wrongPath(body.To, err), "to")
	case to == f.path:
		return again(http.StatusUnprocessableEntity, "This is the current path. Enter a new one.", "to")
	case f.Dir && strings.HasPrefix(string(to), string(f.path)+"/"):
		return again(http.StatusUnprocessableEntity, "A directory cannot go into itself.", "to")
	case len(body.Message) > maxMessage:
		return again(http.StatusUnprocessableEntity, "The line is too long. Use fewer words.", "message")
	}
	if !f.Dir && strings.HasSuffix(body.To, "/") { // the target is a directory, which the move creates if needed
		if to, err = space.ParsePath(string(to) + "/" + path.Base(string(f.path))); err != nil {
			return again(http.StatusUnprocessableEntity, fault.PublicOf(err), "to")
		}
	}
	taken, err := web.PathTaken(v, f.View, to)
	if err != nil {
		return err
	}
	if taken != "" && !strings.HasPrefix(string(f.path), string(to)+"/") {
		return again(http.StatusConflict, taken, "to")
	}
	release, err := s.hold(v.R.Context())
	if err != nil {
		return err
	}
	defer release()
	changes, err := s.moves(v, f, all, to)
	if err != nil {
		return again(web.AsPage(err).Status, fault.PublicOf(err), "to")
	}
	if body.Message == "" {
		body.Message = "Move " + web.ShownPath(f.path, 120) + " to " + web.ShownPath(to, 120)
	}
	remark, err := s.WriteFiles(v, f.ID, space.ToolWebMove, changes, body.Message)
	switch {
	case err == nil && f.Dir:
		return s.Saved(v, f.View, remark, web.DoneURL(dirURL(f.ID, to), "moved"))
	case err == nil:
		return s.Saved(v, f.View, remark, web.DoneURL(web.SpaceURL(f.ID, "files", to), "moved"))
	case web.IsRefusal(err):
		body.Message = message(v)
		if now, terr := s.target(v); terr == nil && fault.CodeOf(err) == fault.Conflict {
			body.At, body.Base = now.at, now.Blob // the next try moves the current file
		}
		return again(web.AsPage(err).Status, fault.PublicOf(err), "to")
	}
	return err
}

// moves returns the changes that move files to another path.
func (s *pages) moves(v *web.Visit, f found, all []space.Entry, to space.Path) ([]space.Change, error) {
	var total int64
	out := make([]space.Change, 0, 2*len(all))
	for _, c := range all {
		data, err := web.ReadContent(v.R.Context(), f.View, c)
		if err != nil {
			return nil, err
		}
		if total += int64(len(data)); total > s.Editing.MaxChange {
			return nil, fault.New(fault.TooLarge, "This is larger than the %s that one change can have. Move it in parts.", bytesize.Text(s.Editing.MaxChange))
		}
		target, err := space.ParsePath(string(to) + strings.TrimPrefix(string(c.Path), string(f.path)))
		if err != nil {
			return nil, err
		}
		out = append(out,
			space.Change{Path: string(c.Path), Op: space.Delete, Base: c.Blob, BaseMode: c.Mode},
			space.Change{Path: string(target), Op: space.Write, Mode: c.Mode, Content: data})
	}
	return out, nil
}

// showDelete handles GET /spaces/{id}/delete/{path...}. It asks for confirmation.
func (s *pages) showDelete(v *web.Visit) error {
	f, err := s.target(v)
	if err != nil {
		return web.Gone(err)
	}
	body, _, err := s.movable(v, f, "delete")
	if err != nil {
		return err
	}
	return s.movePage(v, http.StatusOK, f, "delete", f.deleteTitle(), body, nil)
}

// saveDelete handles POST /spaces/{id}/delete/{path...}.
func (s *pages) saveDelete(v *web.Visit) error {
	f, err := s.asSeen(v)
	if err != nil {
		return err
	}
	body, all, err := s.movable(v, f, "delete")
	if err != nil {
		return err
	}
	body.Message = message(v)
	if len(body.Message) > maxMessage {
		return s.movePage(v, http.StatusUnprocessableEntity, f, "delete", f.deleteTitle(), body, &web.Problem{Text: "The line is too long. Use fewer words.", Field: "message"})
	}
	changes := make([]space.Change, 0, len(all))
	for _, c := range all {
		changes = append(changes, space.Change{Path: string(c.Path), Op: space.Delete, Base: c.Blob, BaseMode: c.Mode})
	}
	note := body.Message
	if note == "" && f.Dir {
		note = "Delete " + web.ShownPath(f.path, 120) + "/"
	}
	remark, err := s.WriteFiles(v, f.ID, space.ToolWeb, changes, note)
	switch {
	case err == nil:
		return s.Saved(v, f.View, remark, web.DoneURL(dirURL(f.ID, s.nearest(v, f.View, "", f.path)), "deleted"))
	case fault.CodeOf(err) == fault.Conflict:
		// Show the page again, with the current files.
		now, terr := s.target(v)
		if terr != nil {
			return web.Gone(terr)
		}
		fresh, _, merr := s.movable(v, now, "delete")
		if merr != nil {
			return merr
		}
		fresh.Message = body.Message
		fresh.Changed = "/spaces/" + string(f.ID) + "/compare?" + url.Values{"from": {string(f.at)}, "to": {string(fresh.At)}, "path": {string(f.path)}}.Encode()
		return s.movePage(v, http.StatusConflict, now, "delete", f.deleteTitle(), fresh,
			&web.Problem{Text: "Nothing was deleted: the content changed since you opened the page. Look at what changed before you go on."})
	case web.IsRefusal(err):
		return s.movePage(v, web.AsPage(err).Status, f, "delete", f.deleteTitle(), body, &web.Problem{Text: fault.PublicOf(err)})
	}
	return err
}

// nearest returns the nearest directory above a path that exists at a commit. A directory without
// files does not exist.
func (s *pages) nearest(v *web.Visit, m service.View, at space.CommitID, p space.Path) space.Path {
	d := web.ParentOf(p)
	for d != "" {
		if e, ok, err := m.Find(v.R.Context(), at, d); ok && e.Dir || err != nil {
			break
		}
		d = web.ParentOf(d)
	}
	return d
}
