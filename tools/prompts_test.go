package tools_test

import (
	"context"
	"strings"
	"testing"
	"unicode"

	"satchel/tools"
)

func TestPrompts(t *testing.T) {
	b := newBench(t, fullSpace(), func(o *tools.Options) { o.Prefix = "s_" })
	ctx := context.Background()
	list, err := b.Prompts(ctx, reader())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, p.Name)
		if p.Description == "" {
			t.Errorf("%s has no description", p.Name)
		}
	}
	if strings.Join(got, " ") != "onboarding remember review tidy" {
		t.Errorf("listed %q", got)
	}
	text := func(c tools.Caller, name string, args map[string]string) string {
		_, text, err := b.GetPrompt(ctx, c, name, args)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, name := range []string{"onboarding", "remember", "review"} {
		golden(t, name+".txt", text(editor(), name, nil)+"\n")
		if s := text(reader(), name, nil); strings.Contains(s, "s_bash") || strings.Contains(s, "s_forget") || !strings.Contains(s, "read-only") {
			t.Errorf("%s of a reader: %s", name, s)
		}
	}
	if s := text(reader(), "tidy", map[string]string{"request": "my $1 notes"}); !strings.HasSuffix(s, "Do this: my $1 notes") || strings.Contains(s, "user-invocable") {
		t.Error(s)
	}
	for _, tt := range []struct {
		name string
		args map[string]string
		code string
	}{
		{"refunds", nil, "not_found"}, {"misnamed", nil, "not_found"}, {"", nil, "not_found"}, {"../x", nil, "not_found"},
		{"tidy", map[string]string{"reqest": "x"}, "invalid"}, {"onboarding", map[string]string{"request": "x"}, "invalid"},
	} {
		if _, _, err := b.GetPrompt(ctx, reader(), tt.name, tt.args); codeOf(err) != tt.code {
			t.Errorf("%q %v: %v", tt.name, tt.args, err)
		}
	}
}

// Attack: a shared skill whose description turns text around or writes to a
// terminal, in the list that clients show as a menu.
func TestPromptsCarryNoControlCharacters(t *testing.T) {
	b := newBench(t, map[string]string{
		"skills/tidy/SKILL.md": "---\nname: tidy\ntitle: \"Ti\\e[31mdy\\u202E\"\ndescription: \"Tidies\\e]0;x\\a \\u202Eseton\\u2066\\nnow\"\nuser-invocable: true\n---\nbody\n",
	}, nil)
	list, err := b.Prompts(t.Context(), reader())
	if err != nil || len(list) != 4 {
		t.Fatalf("%v, %v", list, err)
	}
	description, _, err := b.GetPrompt(t.Context(), reader(), "tidy", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{list[3].Title, list[3].Description, description} {
		if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) }); i >= 0 || s == "" {
			t.Errorf("%q", s)
		}
	}
}

// TestASkillReplacesAPrompt checks that a skill of the user keeps its name, except for the
// first prompt of a new space.
func TestASkillReplacesAPrompt(t *testing.T) {
	b := newBench(t, map[string]string{
		"skills/review/SKILL.md":     "---\nname: review\ndescription: Reviews code.\nuser-invocable: true\n---\nReview: $ARGUMENTS\n",
		"skills/onboarding/SKILL.md": "---\nname: onboarding\ndescription: x\nuser-invocable: true\n---\nx\n",
	}, nil)
	list, err := b.Prompts(t.Context(), reader())
	if err != nil || len(list) != 3 || list[2].Name != "review" || list[2].Description != "Reviews code." {
		t.Errorf("%+v, %v", list, err)
	}
	if _, text, err := b.GetPrompt(t.Context(), reader(), "review", map[string]string{"request": "my patch"}); err != nil || !strings.Contains(text, "Review: my patch") {
		t.Errorf("%q, %v", text, err)
	}
	if description, _, err := b.GetPrompt(t.Context(), reader(), "onboarding", nil); err != nil || description == "x" {
		t.Errorf("%q, %v", description, err)
	}
}
