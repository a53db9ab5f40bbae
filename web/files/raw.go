package files

import (
	"satchel/web"
)

// rawFile handles GET /spaces/{id}/raw/{path...}. The browser shows only text and
// pictures, and saves all other files.
func (s *pages) rawFile(v *web.Visit) error {
	l, err := s.Locate(v)
	if err != nil {
		return err
	}
	if l.Path == "" || l.Slash {
		return web.ErrGone
	}
	e, err := l.Space.Lookup(v.R.Context(), l.Commit, l.Path)
	if err != nil {
		return web.Gone(err)
	}
	if e.Dir {
		return web.ErrGone
	}
	ctx, w, leave, err := s.BeginDownload(v, l.Space.ID, true)
	if err != nil {
		return err
	}
	defer leave()
	data, err := web.ReadContent(ctx, l.Space, e)
	if err != nil {
		return err
	}
	web.ServeRaw(w, v.R, l.Path, e, data)
	return nil
}
