package syncs_test

import (
	"fmt"
	"slices"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/space"
)

func none(space.SyncProgress) {}

func TestLicenceOf(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n  Version 2.0, January 2004": "Apache-2.0",
		"Permission is hereby granted, free of charge, to any person\n\nThe above copyright notice and this\npermission notice shall be included": "MIT",
		"Creative Commons Attribution-ShareAlike 4.0 International":                                                                               "CC-BY-SA-4.0",
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007":                                                                                     "GPL-3.0",
		"Redistribution and use in source and binary forms, with or without":                                                                      "BSD-2-Clause",
		"All rights reserved.": "LICENSE.md",
		"":                     "LICENSE.md",
	} {
		if got := syncs.LicenceOf("LICENSE.md", []byte(text)); got != want {
			t.Errorf("%.30q: %s, want %s", text, got, want)
		}
	}
	for name, want := range map[string]bool{"LICENSE": true, "licence.txt": true, "COPYING": true, "licenses-of-others.md": false, "README.md": false} {
		if syncs.IsLicence(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A preview says what the files say about themselves, and suggests a title.
func TestPreviewDescribesTheFiles(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", map[string]string{
		"LICENSE": "Apache License, Version 2.0", "a.md": "---\ntitle: From the block\n---\n# Not this\n", "b.md": "```\n# not this\n```\n# The heading\n", "c.txt": "# plain\n", "sub/LICENSE": "All mine",
	})
	steps := 0
	p, err := b.Preview(b.ctx, b.setting(), func(space.SyncProgress) { steps++ })
	must(t, err)
	if want := []string{"LICENSE", "From the block", "The heading", "c.txt", "sub/LICENSE"}; !slices.Equal(p.Titles, want) || p.Licence != "Apache-2.0" || p.Title != "Docs" || steps == 0 {
		t.Errorf("%+v after %d steps", p, steps)
	}
}

func TestDryRunListsTheChanges(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", map[string]string{"a.md": "a", "b.md": "b", "c.md": "c", "d.md": "d"})
	b.add()
	b.sync()
	b.server.Push("docs", "main", map[string]string{"a.md": "changed", "b.md": remotetest.Gone, "moved.md": "b", "c.md": remotetest.Gone, "new.md": "new"})
	p, err := b.DryRun(b.ctx, "handbook", none)
	must(t, err)
	want := []space.SyncChange{
		{Path: "a.md", Status: space.Modified}, {Path: "c.md", Status: space.Deleted}, {Path: "moved.md", Status: space.Added, From: "b.md"}, {Path: "new.md", Status: space.Added},
	}
	if !slices.Equal(p.Changes, want) || p.Renamed != 1 || p.Deleted != 1 {
		t.Errorf("%+v", p)
	}
	b.wantShown(map[string]string{"a.md": "a", "b.md": "b", "c.md": "c", "d.md": "d"})
}

// A paused source keeps its interval, syncs on request, and stays paused.
func TestPause(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", map[string]string{"a.md": "a"})
	b.add()
	b.sync()
	yes, no := true, false
	wantPaused := func(what string, paused bool) {
		t.Helper()
		st, err := b.Status(b.ctx, "handbook")
		must(t, err)
		if st.Paused != paused || st.Next.IsZero() != paused || st.Every == 0 {
			t.Errorf("%s: %+v", what, st)
		}
	}
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Paused: &yes}))
	wantPaused("paused", true)
	b.server.Push("docs", "main", map[string]string{"a.md": "newer"})
	if r := b.sync(); r.Changed != 1 {
		t.Errorf("a request: %+v", r)
	}
	wantPaused("after a request", true)
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Settings: fmt.Appendf(nil, `{"url": %q, "branch": "main"}`, b.server.URL("docs")), Trusted: true}))
	wantPaused("after new settings", true)
	hour := int64(3600)
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Every: &hour}))
	wantPaused("after a new interval", true)
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Paused: &no}))
	wantPaused("resumed", false)
}
