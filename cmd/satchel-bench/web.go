//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/space"
)

// webSuite measures the pages of a space of 10,000 files with some thousand
// commits, each beside the same page of a small space: they must not grow with
// it (issue: 50 ms at the median, 100 kB before content).
func webSuite(ctx context.Context, b *bench) error {
	small, err := b.website(ctx, "web-small", b.size(1000), 100)
	if err != nil {
		return err
	}
	defer small.stop()
	commits := 5000
	if b.quick {
		commits = 300
	}
	large, err := b.website(ctx, "web-large", b.size(10_000), commits)
	if err != nil {
		return err
	}
	defer large.stop()
	for _, p := range []struct{ name, small, large string }{
		{"home", "/", "/"},
		{"tree", small.in("files/"), large.in("files/")},
		{"directory", small.in("files/knowledge/s07/"), large.in("files/knowledge/s07/")},
		{"file", small.in("files/" + pagePath(7)), large.in("files/" + pagePath(7))},
		{"source", small.in("files/" + pagePath(7) + "?view=source"), large.in("files/" + pagePath(7) + "?view=source")},
		{"raw", small.in("raw/" + pagePath(7)), large.in("raw/" + pagePath(7))},
		{"history", small.in("history/"), large.in("history/")},
		{"file_history", small.in("history/" + pagePath(7)), large.in("history/" + pagePath(7))},
		// Nothing of the last thousand commits changed it.
		{"old_history", small.in("history/old.md"), large.in("history/old.md")},
		{"commit", small.in("commits/" + string(small.head)), large.in("commits/" + string(large.head))},
		{"first_commit", small.in("commits/" + string(small.first)), large.in("commits/" + string(large.first))},
		{"search", small.in("search?q=" + small.query), large.in("search?q=" + large.query)},
		{"activity", small.in("activity"), large.in("activity")},
	} {
		var few, many times
		var weight int
		for i := range b.runs(200) + 5 {
			if i == 5 {
				few, many = nil, nil // warm by now
			}
			err := errors.Join(
				few.add(func() error { _, err := small.get(ctx, p.small); return err }),
				many.add(func() error { body, err := large.get(ctx, p.large); weight = len(body); return err }),
			)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		b.versus("web_"+p.name+"_p50", many.median(), "ms", "a small space", few.median())
		if p.name == "file" || p.name == "tree" {
			static, err := large.static(ctx, p.large)
			if err != nil {
				return err
			}
			b.alone("web_"+p.name+"_weight", float64(weight+static)/1e3, "kB")
		}
	}
	return nil
}

// website is a server, and a browser that is signed in at it.
type website struct {
	*server
	cookie      string
	space       space.SpaceID
	first, head space.CommitID
	query       string
}

func (w *website) in(page string) string { return "/spaces/" + string(w.space) + "/" + page }

// website makes a data directory with a space of so many files and commits, and
// serves it.
func (b *bench) website(ctx context.Context, name string, files, commits int) (*website, error) {
	t := &tokenSet{name: name, data: filepath.Join(b.dir, name)}
	var u struct{ ID, Name string }
	if err := (&server{b: b, data: t.data}).admin(ctx, &u, "user", "add", "ada"); err != nil {
		return nil, err
	}
	w := &website{}
	err := t.open(ctx, func(s *store.Store) error {
		all, err := s.SpacesOf(ctx, space.UserID(u.ID))
		if err != nil {
			return err
		}
		w.space = all[0].ID
		secret, _, err := s.StartSession(ctx, store.NewSession{User: space.UserID(u.ID), Method: "link"})
		w.cookie = secret.Reveal()
		return err
	})
	if err != nil {
		return nil, err
	}
	b.log("%s: %d files, %d commits", name, files, commits)
	if err := w.fill(ctx, filepath.Join(t.data, "spaces"), files, commits); err != nil {
		return nil, err
	}
	if w.server, err = b.serve(ctx, name, "SATCHEL_SANDBOX_RUNTIME=none"); err != nil {
		return nil, err
	}
	w.query = "title"
	return w, nil
}

// fill writes the history, without waiting for the disk.
func (w *website) fill(ctx context.Context, dir string, files, commits int) error {
	g, err := gitstore.Open(gitstore.Options{Dir: dir, Sync: func(*os.File) error { return nil }})
	if err != nil {
		return err
	}
	s := &remoteSpace{store: g, id: w.space}
	begun := time.Now().Add(-time.Duration(commits+1) * time.Minute)
	cs := corpusChanges(files, 3000)
	cs.Changes = append(cs.Changes, space.Change{Path: "old.md", Content: []byte("# Old\n")})
	c, err := g.Commit(ctx, w.space, cs, space.Meta{Author: author, Message: "Bring what there is", Tool: "bash", Client: "bench", Time: begun})
	w.first, w.head = c.ID, c.ID
	words := newWords(2)
	for i := 0; err == nil && i < commits; i++ {
		p := pagePath(i * 7 % files)
		var base space.BlobID
		var mode space.Mode
		if base, mode, _, err = s.store.Blob(ctx, s.id, "", space.Path(p)); err != nil {
			break
		}
		c, err = g.Commit(ctx, w.space, space.ChangeSet{Changes: []space.Change{{Path: p, Content: []byte(words.page(i, 3000)), Base: base, BaseMode: mode}}},
			space.Meta{Author: author, Message: words.sentence(6), Tool: "bash", Client: "claude-code", Time: begun.Add(time.Duration(i+1) * time.Minute)})
		w.head = c.ID
	}
	return errors.Join(err, g.Close())
}

// get loads a page as a browser does.
func (w *website) get(ctx context.Context, target string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.addr+target, nil)
	if err != nil {
		return "", err
	}
	_, port, _ := strings.Cut(w.addr, ":")
	r.Host = "localhost:" + port
	r.AddCookie(&http.Cookie{Name: "satchel", Value: w.cookie})
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d to %s", target, res.StatusCode, res.Header.Get("Location"))
	}
	return string(body), err
}

// static is how many bytes the styles and scripts of a page have.
func (w *website) static(ctx context.Context, target string) (int, error) {
	page, err := w.get(ctx, target)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, m := range regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		body, err := w.get(ctx, m[1])
		if err != nil {
			return 0, err
		}
		n += len(body)
	}
	return n, nil
}
