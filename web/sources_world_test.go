package web_test

import (
	"regexp"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// followed is a world with a git server, whose repository docs the source handbook follows.
type followed struct {
	*active
	upstream *remotetest.Server
}

// newFollowed makes the source for the readers; without readers it is for everybody. Nothing syncs by
// itself.
func newFollowed(t *testing.T, readers ...string) *followed {
	t.Helper()
	f := &followed{newActive(t, web.LiveOptions{}), remotetest.New(t, remotetest.Options{})}
	f.upstream.Create("docs")
	f.push("README.md", "# Handbook\n", "guide/a.md", "# Alpha\n", "guide/b.md", "# Beta\n", "LICENSE", "Apache License\nVersion 2.0, January 2004\n")
	in := service.SyncedSourceInput{Source: space.Source{ID: "handbook", SourceText: space.SourceText{Title: "Handbook"}, Everybody: len(readers) == 0}, Readers: readers}
	in.URL = f.upstream.URL("docs")
	_, err := f.service.AddSyncedSource(t.Context(), service.Operator(), in)
	must(t, err)
	return f
}

// push changes files upstream.
func (f *followed) push(files ...string) {
	f.t.Helper()
	all := map[string]string{}
	for i := 0; i+1 < len(files); i += 2 {
		all[files[i]] = files[i+1]
	}
	f.upstream.Push("docs", "main", all)
}

// sync syncs the source to the end.
func (f *followed) sync() space.SyncRun {
	f.t.Helper()
	f.pass(time.Minute)
	x, err := f.service.SyncSource(f.t.Context(), service.Operator(), service.SyncSourceInput{ID: "handbook"})
	must(f.t, err)
	return *x.Run
}

func (f *followed) status() space.Sync {
	f.t.Helper()
	st, err := f.service.ListSyncRuns(f.t.Context(), service.Operator(), service.ListSyncRunsInput{ID: "handbook"})
	must(f.t, err)
	return st
}

// handbook is the address of the source's page.
const handbook = "/library/sources/handbook"

var stateTone = regexp.MustCompile(`<span class="state ([a-z]+)">`)

// tone returns the tone of the first state on a page.
func tone(body string) string {
	if m := stateTone.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return ""
}
