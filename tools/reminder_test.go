package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/tools"
)

// A conversation that has changed five files and saved nothing is reminded once.
func TestReminderToRemember(t *testing.T) {
	const reminder = "and saved no memory. If you learned something lasting about the user, call x_remember.]"
	newTalk := func(t *testing.T, known bool) (write func(name string) string, call func(tool, args string) string) {
		b := newBench(t, map[string]string{"memory/preference/tea.md": "---\nvalue: Likes tea\n---\n"}, func(o *tools.Options) { o.Prefix = "x_" })
		c := editor()
		if known {
			c.Conversation = new(tools.Conversation)
		}
		call = func(tool, args string) string {
			t.Helper()
			r := b.callAs(t, c, "x_"+tool, args)
			check(t, r, false)
			return textOf(r)
		}
		content := 0
		return func(name string) string {
			content++
			return call("write", fmt.Sprintf(`{"path":%q,"content":"%d"}`, name, content))
		}, call
	}
	some := []string{"a.md", "b.md", "c.md", "d.md"}
	t.Run("once", func(t *testing.T) {
		write, _ := newTalk(t, true)
		for _, name := range some {
			if text := write(name); strings.Contains(text, reminder) {
				t.Errorf("after %s: %s", name, text)
			}
		}
		if text := write("e.md"); !strings.HasSuffix(text, "\n[You changed 5 files "+reminder) {
			t.Errorf("%s", text)
		}
		for _, name := range []string{"f.md", "g.md", "h.md", "i.md", "j.md", "k.md"} {
			if text := write(name); strings.Contains(text, reminder) {
				t.Errorf("again: %s", text)
			}
		}
	})
	t.Run("of a client that is not known", func(t *testing.T) {
		write, _ := newTalk(t, false)
		for _, name := range append(some, "e.md", "f.md") {
			if text := write(name); strings.Contains(text, reminder) {
				t.Errorf("%s", text)
			}
		}
	})
	for name, save := range map[string][2]string{
		"remember":      {"remember", `{"facts":[{"type":"a","key":"b","value":"c"}]}`},
		"forget":        {"forget", `{"keys":["preference/tea"]}`},
		"a memory file": {"write", `{"path":"memory/preference/seat.md","content":"---\nvalue: Prefers windows\n---\n"}`},
	} {
		t.Run("not after "+name, func(t *testing.T) {
			write, call := newTalk(t, true)
			write("z.md")
			call(save[0], save[1])
			for _, name := range append(some, "e.md") {
				if text := write(name); strings.Contains(text, reminder) {
					t.Errorf("%s", text)
				}
			}
		})
	}
	t.Run("not for one file changed often", func(t *testing.T) {
		write, call := newTalk(t, true)
		write("a.md")
		for i := range 10 {
			args := fmt.Sprintf(`{"path":"a.md","edits":[{"old":"%d","new":"%d"}]}`, i+1, i+2)
			if text := call("edit", args); strings.Contains(text, reminder) {
				t.Fatal(text)
			}
		}
	})
}
