package exports_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"satchel/internal/exports"
	"satchel/internal/fault"
)

// zipped makes an archive of names and contents.
func zipped(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		w, err := z.Create(pairs[i])
		if err == nil {
			_, err = w.Write([]byte(pairs[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(name, format string, data []byte, l exports.Limits) (exports.Bundle, error) {
	return exports.Read(name, format, bytes.NewReader(data), int64(len(data)), l)
}

func TestAnArchiveWithALargeDirectory(t *testing.T) {
	pairs := make([]string, 2*250_000)
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = fmt.Sprintf("a folder with a long name/%020d.md", i)
	}
	_, err := read("notes.zip", "", zipped(t, pairs...), exports.Limits{Files: 1 << 30})
	if fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("%v", err)
	}
}

// imported reads a file whose format the content shows.
func imported(t *testing.T, format, name string, data []byte) exports.Bundle {
	t.Helper()
	b, err := read(name, "", data, exports.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Format != format {
		t.Errorf("the format is %q, want %q", b.Format, format)
	}
	return b
}

func pageAt(t *testing.T, b exports.Bundle, path string) string {
	t.Helper()
	for _, p := range b.Pages {
		if p.Path == path {
			return string(p.Content)
		}
	}
	t.Fatalf("no page %s in %v", path, b.Pages)
	return ""
}

func values(b exports.Bundle) (out []string) {
	for _, f := range b.Facts {
		out = append(out, f.Value)
	}
	return out
}

const chatGPT = `[{"title": "Trip to Lisbon", "create_time": 1709632800.123, "update_time": 1709719200.5, "id": "c-1", "current_node": "d",
 "mapping": {
  "root": {"id": "root", "message": null, "parent": null, "children": ["s"]},
  "s": {"id": "s", "message": {"author": {"role": "system"}, "content": {"content_type": "text", "parts": ["hidden"]}}, "parent": "root", "children": ["a"]},
  "a": {"id": "a", "message": {"author": {"role": "user"}, "create_time": 1709632800, "content": {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}, "Where to stay?"]}}, "parent": "s", "children": ["b", "d"]},
  "b": {"id": "b", "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["The first answer"]}}, "parent": "a", "children": []},
  "d": {"id": "d", "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["In Alfama."]}}, "parent": "a", "children": []}}},
 {"title": "Empty", "id": "c-2", "create_time": 1e999, "current_node": "x", "mapping": {"x": {"parent": "x"}}},
 {"title": 5, "id": "c-3"}]`

// A conversation is the branch that the person sees.
func TestChatGPT(t *testing.T) {
	b := imported(t, exports.ChatGPT, "export.zip", zipped(t, "user.json", "{}", "chat.html", "<html>", "conversations.json", chatGPT))
	if len(b.Pages) != 1 || len(b.Skipped) != 3 {
		t.Fatalf("%v", b)
	}
	if !strings.HasPrefix(b.Pages[0].Path, "knowledge/conversations/chatgpt/2024/2024-03-05-") {
		t.Error(b.Pages[0].Path)
	}
	const body = "# Trip to Lisbon\n\n## User\n\n(An image is left out.)\n\nWhere to stay?\n\n## ChatGPT\n\nIn Alfama.\n"
	if page := string(b.Pages[0].Content); !strings.HasSuffix(page, "---\n"+body) || !strings.Contains(page, "updated: 2024-03-06\n") {
		t.Errorf("%s", page)
	}
	parts := imported(t, exports.ChatGPT, "export.zip", zipped(t, "conversations.json", chatGPT, "conversations-001.json", strings.ReplaceAll(chatGPT, "c-1", "c-4")))
	if len(parts.Pages) != 2 {
		t.Errorf("%v", parts.Pages)
	}
	imported(t, exports.ChatGPT, "conversations.json", []byte(chatGPT))
}

const claude = `[{"uuid": "u-1", "name": "Bread", "created_at": "2025-06-01T08:00:00.123456Z", "updated_at": "2025-06-02T08:00:00Z", "account": {"uuid": "x"}, "chat_messages": [
 {"uuid": "m1", "sender": "human", "text": "How long?", "content": [{"type": "text", "text": "How long?"}]},
 {"uuid": "m2", "sender": "assistant", "text": "", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "An hour."}]},
 {"uuid": "m3", "sender": "human", "text": "Thanks"}]}]`

func TestClaude(t *testing.T) {
	b := imported(t, exports.Claude, "data.zip", zipped(t, "users.json", "[]", "conversations.json", claude,
		"projects.json", `[{"uuid": "p-1", "name": "Bakery", "description": "A shop", "prompt_template": "Be short.", "docs": [{"filename": "menu.md", "content": "Rye"}]}]`,
		"memories.json", `[{"conversations_memory": "**Work context**\n\nRuns a bakery.\n- Speaks Portuguese", "project_memories": {"p-1": "Opens in May."}}]`))
	if len(b.Pages) != 2 || !strings.Contains(string(b.Pages[0].Content), "## User\n\nHow long?\n\n## Claude\n\nAn hour.\n\n## User\n\nThanks\n") ||
		!strings.Contains(string(b.Pages[1].Content), "## Instructions\n\nBe short.\n\n## menu.md\n\nRye\n") {
		t.Errorf("%s", b.Pages)
	}
	if got := fmt.Sprint(values(b)); got != "[Runs a bakery. Speaks Portuguese Opens in May.]" {
		t.Error(got)
	}
}

func TestMemoryText(t *testing.T) {
	b := imported(t, exports.Memory, "memory.txt", []byte("\ufeff# Preferences\r\n\r\nLikes: everyday words\n- [2025-01-02] - Prefers window seats.\n* Has a dog\n2. Lives in Porto\nHas a dog\nPeople:\n```\n"))
	if got := fmt.Sprintf("%q", values(b)); got != `["Likes: everyday words" "Prefers window seats." "Has a dog" "Lives in Porto"]` {
		t.Error(got)
	}
	if f := b.Facts[1]; !strings.HasPrefix(f.Key, "prefers-window-seats-") || f.Explicit {
		t.Errorf("%+v", f)
	}
}

// The key of a memory derives from its ID, so that a later export replaces its value.
func TestMem0(t *testing.T) {
	one := imported(t, exports.Mem0, "mem0.json", []byte(`{"results": [{"id": "m-1", "memory": "Has a dog", "user_id": "u", "metadata": null, "score": 1e400}, {"id": 5}]}`))
	two := imported(t, exports.Mem0, "mem0.json", []byte(`[{"id": "m-1", "memory": "Has two dogs"}]`))
	if len(one.Facts) != 1 || len(one.Skipped) != 1 || one.Facts[0].Key != two.Facts[0].Key {
		t.Errorf("%v, %v", one, two)
	}
}

func TestFoldersOfNotes(t *testing.T) {
	const note = "---\ntitle: A\npermalink: notes/a\n---\n- [fact] b #c\n"
	b := imported(t, exports.BasicMemory, "notes", zipped(t, "notes/a.md", note))
	if got := pageAt(t, b, "knowledge/basic-memory/notes/a.md"); got != note {
		t.Error(got)
	}
	b = imported(t, exports.Obsidian, "Vault", zipped(t, ".obsidian/app.json", "{}", "Daily/Über mich.md", "[[b]]", "cat.png", "", "data.md", "\x00"))
	pageAt(t, b, "knowledge/obsidian/Daily/Über mich.md")
	if len(b.Pages) != 1 || len(b.Skipped) != 2 {
		t.Errorf("%v", b)
	}
}

func TestNotion(t *testing.T) {
	const home, sub = "Home 0123456789abcdef0123456789abcdef", "Sub page fedcba9876543210fedcba9876543210"
	inner := zipped(t, home+".md", "# Home\n[Sub](Home%200123456789abcdef0123456789abcdef/Sub%20page%20fedcba9876543210fedcba9876543210.md) [web](https://example.com/a%20fedcba9876543210fedcba9876543210)\n",
		home+"/"+sub+".md", "# Sub page\n", home+"/Table 0123456789abcdef0123456789abcdef.csv", "a,b")
	b := imported(t, exports.Notion, "Export.zip", zipped(t, "Export-1-Part-1.zip", string(inner)))
	pageAt(t, b, "knowledge/notion/Home 01234567/Sub page fedcba98.md")
	want := "# Home\n[Sub](Home%2001234567/Sub%20page%20fedcba98.md) [web](https://example.com/a%20fedcba9876543210fedcba9876543210)\n"
	if got := pageAt(t, b, "knowledge/notion/Home 01234567.md"); got != want {
		t.Error(got)
	}
	if len(b.Skipped) != 1 {
		t.Errorf("%v", b.Skipped)
	}
}

func TestInstructions(t *testing.T) {
	for name, path := range map[string]string{"CLAUDE.md": "claude", "shop/CLAUDE.md": "shop-claude", "shop/AGENTS.md": "shop-agents", "shop/.cursorrules": "shop-cursorrules"} {
		if got := pageAt(t, imported(t, exports.Instructions, name, []byte("Be short.\n")), "knowledge/instructions/"+path+".md"); got != "Be short.\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A page that an import has written is untouched until anyone changes a byte of it.
func TestUntouched(t *testing.T) {
	page := imported(t, exports.ChatGPT, "conversations.json", []byte(chatGPT)).Pages[0].Content
	if !exports.Untouched(page) {
		t.Error("the page counts as changed")
	}
	for i := range page {
		changed := bytes.Clone(page)
		if changed[i]++; exports.Untouched(changed) {
			t.Errorf("a change at %d is not found in %q", i, changed)
		}
	}
	if exports.Untouched([]byte("a note")) {
		t.Error("a note counts as imported")
	}
}

// Attack: archives that are damaged, that unpack to too much, or whose names lead outside.
func TestRefused(t *testing.T) {
	whole := zipped(t, "conversations.json", chatGPT)
	broken := bytes.Clone(whole)
	broken[60]++
	link := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		h := &zip.FileHeader{Name: "a.md"}
		h.SetMode(fs.ModeSymlink | 0o777)
		if w, err := z.CreateHeader(h); err == nil {
			_, err = w.Write([]byte("/etc/passwd"))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}()
	deep := strings.Repeat("[", 1_000_000)
	zeros := strings.Repeat("\x00", 1<<20)
	small := exports.Limits{Archive: 1 << 20, Unpacked: 1 << 19, Files: 3, Facts: 2, Pages: 1000}
	tests := []struct {
		name, file string
		data       []byte
		code       fault.Code
	}{
		{"cut off", "a.zip", whole[:len(whole)/2], fault.Invalid},
		{"damaged", "a.zip", broken, fault.Invalid},
		{"cut off JSON", "a.zip", zipped(t, "conversations.json", chatGPT[:len(chatGPT)-20]), fault.Invalid},
		{"not a list", "a.zip", zipped(t, "conversations.json", `{"a": 1}`), fault.Invalid},
		{"deep", "a.zip", zipped(t, "conversations.json", deep[:200_000]), fault.Invalid},
		{"deep mem0", "a.json", []byte(`{"results": ` + deep[:200_000]), fault.Invalid},
		{"outside", "a.zip", zipped(t, "../a.md", "a"), fault.Invalid},
		{"inside a nested archive", "a.zip", zipped(t, "n.zip", string(zipped(t, "x/../../a.md", "a"))), fault.Invalid},
		{"absolute", "a.zip", zipped(t, "/etc/a.md", "a"), fault.Invalid},
		{"Windows", "a.zip", zipped(t, `..\a.md`, "a"), fault.Invalid},
		{"control characters", "a.zip", zipped(t, "a\x1b[2J.md", "a"), fault.Invalid},
		{"symbolic link", "a.zip", link, fault.Invalid},
		{"bomb", "a.zip", zipped(t, "conversations.json", "["+strings.Repeat(" ", 1<<20)+"]"), fault.TooLarge},
		{"nested bomb", "a.zip", zipped(t, "n.zip", string(zipped(t, "a.md", zeros))+zeros), fault.TooLarge},
		{"too many files", "a.zip", zipped(t, "a.md", "", "b.md", "", "c.md", "", "d.md", ""), fault.TooLarge},
		{"too many facts", "a.txt", []byte("One\nTwo\nThree"), fault.TooLarge},
		{"too many pages", "a.zip", zipped(t, "a.md", strings.Repeat("a", 600), "b.md", strings.Repeat("a", 600)), fault.TooLarge},
		{"too large", "a.txt", bytes.Repeat([]byte("a"), 1<<20+1), fault.TooLarge},
		{"empty", "a.txt", nil, fault.Invalid},
		{"binary", "a.txt", []byte{'a', 0}, fault.Invalid},
		{"unknown", "a.png", []byte("a"), fault.Invalid},
		{"an empty archive", "a.zip", zipped(t), fault.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if b, err := read(tt.file, "", tt.data, small); fault.CodeOf(err) != tt.code {
				t.Errorf("%v, %v", b, err)
			}
		})
	}
	if _, err := read("a", "word", []byte("a"), exports.Limits{}); fault.CodeOf(err) != fault.Invalid {
		t.Error(err)
	}
}

// Attack: small archives that become large in memory.
func TestAttackArchivesInAnArchive(t *testing.T) {
	var pairs []string
	for i := range 6 {
		// A name at the end of a file of zeros, so that the file is an archive.
		pairs = append(pairs, fmt.Sprintf("Part-%d.zip", i), string(make([]byte, 1<<20))+string(zipped(t, fmt.Sprintf("%d.md", i), "a")))
	}
	data := zipped(t, pairs...)
	if _, err := read("a.zip", "", data, exports.Limits{Archive: 4 << 20}); len(data) > 1<<17 || fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("%d bytes: %v", len(data), err)
	}
	if _, err := read("a.zip", "", data, exports.Limits{Archive: 8 << 20}); err != nil {
		t.Error(err)
	}
}

func TestAttackManyWrongParts(t *testing.T) {
	items := `{"uuid": "1", "chat_messages": []}` + strings.Repeat(",{}", 100_000)
	for name, text := range map[string]string{"claude": "[" + items + "]", "mem0": `{"results": [` + items + `]}`} {
		b, err := read("a.json", name, []byte(text), exports.Limits{})
		if err != nil || len(b.Skipped) > 1000 || len(b.Skipped)+b.Left != 100_001 {
			t.Errorf("%s: %d skipped, %d left, %v", name, len(b.Skipped), b.Left, err)
		}
	}
}

func TestAttackManyValues(t *testing.T) {
	many := strings.Repeat("{},", 1_100_000) + "{}"
	for name, tt := range map[string]struct{ format, text string }{
		"messages":      {"claude", `[{"uuid": "1", "chat_messages": [` + many + `]}]`},
		"memories":      {"mem0", "[" + many + "]"},
		"conversations": {"claude", "[" + strings.Repeat("{},", 200_000) + "{}]"},
	} {
		if _, err := read("a.json", tt.format, []byte(tt.text), exports.Limits{}); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A long conversation is cut at the end of a message.
func TestLongConversation(t *testing.T) {
	var messages []map[string]any
	for i := range 100 {
		messages = append(messages, map[string]any{"sender": "human", "text": fmt.Sprintf("%d %s", i, strings.Repeat("long ", 100))})
	}
	raw, err := json.Marshal([]any{map[string]any{"uuid": "u", "name": "Long", "chat_messages": messages}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := read("conversations.json", "", raw, exports.Limits{Page: 10_000})
	if err != nil || len(b.Pages) != 1 || len(b.Pages[0].Content) > 10_000 || len(b.Skipped) != 1 {
		t.Errorf("%v, %v", b.Skipped, err)
	}
}

// FuzzRead: whatever the file, Read gives valid pages and facts, or refuses.
func FuzzRead(f *testing.F) {
	f.Add("conversations.json", "", []byte(chatGPT))
	f.Add("conversations.json", "", []byte(claude))
	f.Add("a.zip", "", zipped(f, "conversations.json", chatGPT))
	f.Add("conversations-000.json", "", []byte(chatGPTShard("c")))
	f.Add("a.zip", "", zipped(f, "projects/p.json", claudeProjectFile, "memories/m.json", claudeMemoryFile, "design_chats/d.json", claudeDesignFile))
	f.Add("memories.json", "", []byte(claudeMemoryFile))
	f.Add("a.zip", "notion", zipped(f, "A 0123456789abcdef0123456789abcdef.md", "[a](b%20c)"))
	f.Add("m.json", "", []byte(`{"results": [{"id": "1", "memory": "a"}]}`))
	f.Add("m.txt", "", []byte("- a\n[x] - b"))
	f.Fuzz(func(t *testing.T, name, format string, data []byte) {
		limits := exports.Limits{Archive: 1 << 20, Unpacked: 4 << 20}
		b, err := read(name, format, data, limits)
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				t.Fatalf("no public message: %v", err)
			}
			return
		}
		for _, s := range b.Facts {
			if _, mistakes := s.Check("2026-11-20"); len(mistakes) > 0 {
				t.Fatalf("%+v: %v", s, mistakes)
			}
		}
		again, err := read(name, format, data, limits)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(b) {
			t.Fatalf("another result: %v", err)
		}
	})
}
