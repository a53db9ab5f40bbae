package server

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/tools/index"
)

// countedLibrary is the library as the index reads it. It counts the files.
type countedLibrary struct {
	*sources.Manager
	reads atomic.Int64
}

func (c *countedLibrary) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	c.reads.Add(1)
	return c.Manager.ReadBlob(ctx, id, b)
}

// The documentation of real projects follows three revisions of its repositories over http. After
// each sync the source has what upstream has, byte for byte. Searches find the new pages and not the
// deleted ones, and the index reads only the files that changed.
func TestSyncedDocumentation(t *testing.T) {
	c := testCore(t)
	addUser(t, c.Service, "ann", true)
	server := remotetest.New(t, remotetest.Options{})
	x, err := index.Open(index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	for name, under := range map[string]string{"nuxt": "docs", "shadcn": "apps/v4/content/docs", "astro": "", "flask": "docs"} {
		t.Run(name, func(t *testing.T) {
			d := &documentation{t: t, name: name, under: under, server: server, files: map[string]string{}, library: &countedLibrary{Manager: c.sources}}
			server.Create(name)
			if name == "nuxt" || name == "astro" {
				server.Git(name, "config", "uploadpack.allowFilter", "true")
			}
			for n := range 3 {
				d.push(n)
				if n == 0 {
					settings := fmt.Appendf(nil, `{"url": %q, "content_path": %q}`, server.URL(name), under)
					_, err := c.Service.AddSyncedSource(t.Context(), service.Operator(), service.SyncedSourceInput{
						Source: space.Source{ID: name, Everybody: true}, Setting: syncs.Setting{Kind: "git", Settings: settings},
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				d.check(c, x, n)
			}
		})
	}
}

// documentation is a repository with its files, and what its source shows.
type documentation struct {
	t           *testing.T
	name, under string
	server      *remotetest.Server
	files       map[string]string // upstream, by path
	shown       map[string]string
	library     *countedLibrary
}

// push makes a revision. The first is the real documentation, of which tests take a slice.
func (d *documentation) push(n int) {
	d.t.Helper()
	change := map[string]string{path.Join(d.under, fmt.Sprintf("new/%d.md", n)): fmt.Sprintf("# Page %d\n\nHow the wombatometer%d works.\n", n, n)}
	all := slices.Sorted(maps.Keys(d.files))
	if n == 0 {
		maps.Copy(change, docsOf(d.t, d.name))
		all = nil
	} else {
		change[path.Join(d.under, fmt.Sprintf("new/%d.md", n-1))] = remotetest.Gone
	}
	for i, p := range all {
		if change[p] != "" {
			continue // it is deleted already
		}
		switch text := d.files[p]; (i + n) % 12 {
		case 0:
			change[p] = remotetest.Gone
		case 1:
			change[p], change[path.Join(d.under, "moved", path.Base(path.Dir(p))+fmt.Sprint(i)+path.Base(p))] = remotetest.Gone, text
		case 2:
			change[p] = text + fmt.Sprintf("\nSee the capybarometer%d.\n", n)
		case 3:
			change[p] = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
		}
	}
	d.server.Push(d.name, "main", change)
	for p, text := range change {
		if d.files[p] = text; text == remotetest.Gone {
			delete(d.files, p)
		}
	}
}

func (d *documentation) check(c *Core, x *index.Index, n int) {
	t, ctx := d.t, d.t.Context()
	t.Helper()
	out, err := c.Service.SyncSource(ctx, service.Operator(), service.SyncSourceInput{ID: d.name})
	if err != nil {
		t.Fatal(err)
	}
	if out.Run.State != space.SyncReady {
		t.Fatalf("revision %d: %+v", n, out.Run)
	}
	want := map[string]string{}
	for p, text := range d.files {
		if d.under == "" || strings.HasPrefix(p, d.under+"/") {
			want[strings.TrimPrefix(p, d.under+"/")] = text
		}
	}
	files, err := c.sources.Files(ctx, out.Collection, out.Commit, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		b, err := c.sources.ReadBlob(ctx, out.Collection, f.Blob)
		if err != nil {
			t.Fatal(err)
		}
		got[string(f.Path)] = string(b)
		if f.Mode != space.Regular || want[string(f.Path)] != string(b) {
			t.Errorf("revision %d: %s differs from upstream", n, f.Path)
		}
	}
	if len(got) != len(want) || len(want) < 10 {
		t.Errorf("revision %d: %d files, and %d upstream", n, len(got), len(want))
	}
	changed, pages := 0, 0
	for p, text := range got {
		if was, ok := d.shown[p]; !ok || was != text {
			changed++
			if ext := path.Ext(p); ext == ".md" || ext == ".mdx" || ext == ".rst" {
				pages++
			}
		}
	}
	d.shown = got
	d.library.reads.Store(0)
	if err := x.Update(ctx, out.Collection, d.library); err != nil {
		t.Fatal(err)
	}
	if reads := int(d.library.reads.Load()); reads > changed || reads < pages {
		t.Errorf("revision %d: the index reads %d files, and %d have changed", n, reads, changed)
	}
	t.Logf("revision %d: %d files, %d changed", n, len(got), changed)
	for word, page := range map[string]int{fmt.Sprintf("wombatometer%d", n): n, fmt.Sprintf("wombatometer%d", n-1): n - 1} {
		at := fmt.Sprintf("/library/docs/%s/new/%d.md", d.name, page)
		testenv.WaitFor(t, fmt.Sprintf("the answer for %s in revision %d", word, n), func() bool {
			r, err := c.Service.Search(ctx, service.Operator(), service.SearchInput{Query: word, Source: d.name})
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(r.Results, func(r service.SearchResult) bool { return r.Path == at })
			if found != (page == n) && len(r.Notes) == 0 {
				t.Fatalf("revision %d: a search for %s finds %+v", n, word, r.Results)
			}
			return found == (page == n)
		})
	}
}

// docsOf returns files of a project's documentation: all of them in the long suite.
func docsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	const some = 40
	f, err := os.Open(testenv.LargeData(t, "docs", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, p, _ := strings.Cut(h.Name, "/")
		all[p] = string(b)
	}
	if step := len(all) / some; step > 1 && !testenv.Soak() {
		for i, p := range slices.Sorted(maps.Keys(all)) {
			if i%step != 0 {
				delete(all, p)
			}
		}
	}
	return all
}
