package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestResources(t *testing.T) {
	b := newBench(t, fullSpace(), nil)
	ctx := context.Background()
	list, err := b.Resources(ctx, reader())
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, r := range list {
		fmt.Fprintf(&got, "%s\t%s\t%s\t%s\t%d\n", r.URI, r.Name, r.Description, r.MIME, r.Size)
		content, mime, err := b.ReadResource(ctx, reader(), r.URI)
		if err != nil || mime != r.MIME || len(content) != 1 || int64(len(content[0].Text)) != r.Size {
			t.Errorf("%s: %v, %s, %v", r.URI, err, mime, content)
		}
	}
	golden(t, "resources.txt", got.String())
	for _, uri := range []string{
		"satchel://nope.md", "satchel://resources", "satchel://", "satchel:///", "satchel:///etc/passwd", "satchel://../x", "satchel://resources/%2e%2e/README.md",
		"satchel://README.md:1-2", "satchel:///library", "satchel:///library/docs/none/x.md", "skill://silent/SKILL.md", "skill://README.md",
		"skill://tidy/../../README.md", "skill://tidy", "file:///etc/passwd", "", "satchel://%zz", "skill://tidy/%00",
	} {
		if _, _, err := b.ReadResource(ctx, reader(), uri); codeOf(err) != "not_found" {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for uri, typ := range map[string]string{"satchel://README.md": "text/markdown", "satchel://resources/data.csv": "text/plain", "satchel://resources/sub/inner.md": "text/markdown"} {
		if c, mime, err := b.ReadResource(ctx, reader(), uri); err != nil || mime != typ || c[0].Text == "" {
			t.Errorf("%s: %v, %s, %v", uri, c, mime, err)
		}
	}
	if c, mime, err := b.ReadResource(ctx, reader(), "skill://tidy/scripts/run.sh"); err != nil || mime != "text/plain" || c[0].Text != "echo hi\n" {
		t.Errorf("a skill's script: %v, %s, %v", c, mime, err)
	}
}

func TestResourcePaths(t *testing.T) {
	b, _ := newShelves(t)
	for uri, want := range map[string]string{
		"satchel://README.md":                         "README.md",
		"satchel://resources/none.md":                 "not_found",
		"skill://none/SKILL.md":                       "not_found",
		"satchel:///library/docs/nuxt/guide/start.md": "invalid",
		"satchel:///library/docs/secret/plan.md":      "not_found",
	} {
		p, err := b.ResourcePath(context.Background(), reader(), uri)
		if string(p)+codeOf(err) != want {
			t.Errorf("%s: %q, %v; want %s", uri, p, err, want)
		}
	}
	b = newBench(t, fullSpace(), nil)
	if p, err := b.ResourcePath(context.Background(), reader(), "skill://tidy/scripts/run.sh"); err != nil || p != "skills/tidy/scripts/run.sh" {
		t.Errorf("a skill's script: %q, %v", p, err)
	}
}

func TestSkills(t *testing.T) {
	files := fullSpace()
	for i := range 513 {
		files[fmt.Sprintf("skills/toomany/f%d", i)] = "x"
	}
	files["skills/toomany/SKILL.md"] = "---\nname: toomany\ndescription: x\n---\n"
	files["skills/toolarge/SKILL.md"] = "---\nname: toolarge\ndescription: x\n---\n"
	files["skills/toolarge/data"] = strings.Repeat("x", 16<<20)
	files["skills/acme/refunds/inner/SKILL.md"] = "---\nname: inner\ndescription: nested\n---\n"
	b := newBench(t, files, nil)
	ctx := context.Background()
	list, err := b.Skills(ctx, reader())
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, k := range list {
		fmt.Fprintf(&got, "%s %v\n", k.URI, k.Frontmatter)
		for _, r := range k.Resources {
			fmt.Fprintf(&got, "  %s %s %d\n", r.URI, r.Digest, r.Size)
		}
		one, err := b.GetSkill(ctx, reader(), k.URI)
		if err != nil || fmt.Sprint(one) != fmt.Sprint(k) {
			t.Errorf("GetSkill %s: %v, %v", k.URI, one, err)
		}
	}
	golden(t, "skills.txt", got.String())
	for uri, want := range map[string]string{
		"skill://misnamed/SKILL.md": "must be the same", "skill://toomany/SKILL.md": "514 files", "skill://silent/SKILL.md": "needs a name",
		"skill://toolarge/SKILL.md": "over the size limit", "skill://nope/SKILL.md": "There is no skill", "skill://tidy": "There is no skill",
	} {
		_, err := b.GetSkill(ctx, reader(), uri)
		if codeOf(err) != "not_found" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// Attack: subscriptions to one file by many long URIs, which servers would keep.
func TestAttackLongURI(t *testing.T) {
	b := newBench(t, map[string]string{"a.md": "a"}, nil)
	for uri, want := range map[string]string{"satchel://./a.md": "", "satchel://" + strings.Repeat("./", 1<<20) + "a.md": "not_found"} {
		if _, err := b.ResourcePath(t.Context(), reader(), uri); codeOf(err) != want {
			t.Errorf("%d bytes: %v", len(uri), err)
		}
	}
}

// TestSpacesAreApart checks that no call reaches another space.
func TestSpacesAreApart(t *testing.T) {
	b := newBench(t, fullSpace(), nil)
	b.spaces.create(t, other, map[string]string{"resources/own.md": "---\nname: own\n---\nTHEIRS\n", "skills/own/SKILL.md": "---\nname: own\ndescription: THEIRS\nuser-invocable: true\n---\nTHEIRS\n", "memory/a/b.md": "---\nvalue: THEIRS\n---\n"})
	ctx := context.Background()
	theirs := editor(in(other))
	// The other's call comes first, so that what is kept of it could leak.
	if text := textOf(b.callAs(t, theirs, "instructions", "")); !strings.Contains(text, "THEIRS") {
		t.Fatal("the test is void")
	}
	for name, args := range map[string]string{"instructions": `{}`, "read": `{"paths":["resources/own.md","**/*"]}`, "fetch": `{"id":"resources/own.md"}`} {
		check(t, b.callAs(t, editor(), name, args), name == "fetch", "!THEIRS")
	}
	if _, _, err := b.ReadResource(ctx, editor(), "satchel://resources/own.md"); codeOf(err) != "not_found" {
		t.Error(err)
	}
	if _, err := b.GetSkill(ctx, editor(), "skill://own/SKILL.md"); codeOf(err) != "not_found" {
		t.Error(err)
	}
	if _, _, err := b.GetPrompt(ctx, editor(), "own", nil); codeOf(err) != "not_found" {
		t.Error(err)
	}
}
