package exports_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/internal/exports"
)

// The archives in this file have the files and the fields that programs export today. The
// content is invented.

// chatGPTNode is a node of a conversation of ChatGPT with all its usual fields.
func chatGPTNode(id, parent, child, role, content, extra string) string {
	children := "[]"
	if child != "" {
		children = fmt.Sprintf("[%q]", child)
	}
	return fmt.Sprintf(`%q: {"id": %q, "parent": %q, "children": %s, "message": {"id": %q, "author": {"role": %q, "name": null, "metadata": {}},
 "create_time": 1765000000.25, "update_time": null, "status": "finished_successfully", "end_turn": true, "weight": 1.0, "content": %s, %s}}`, id, id, parent, children, id, role, content, extra)
}

func chatGPTShard(id string) string {
	const all = `"metadata": {"model_slug": "gpt-5", "citations": []}, "recipient": "all", "channel": null`
	text := func(s string) string { return fmt.Sprintf(`{"content_type": "text", "parts": [%q]}`, s) }
	nodes := []string{
		`"root": {"id": "root", "message": null, "parent": null, "children": ["sys"]}`,
		chatGPTNode("sys", "root", "profile", "system", text(""), `"metadata": {"is_visually_hidden_from_conversation": true}, "recipient": "all"`),
		chatGPTNode("profile", "sys", "ask", "user", `{"content_type": "user_editable_context", "user_profile": "A profile", "user_instructions": "Be short"}`, `"metadata": {"is_user_system_message": true, "is_visually_hidden_from_conversation": true}, "recipient": "all"`),
		chatGPTNode("ask", "profile", "think", "user", `{"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "How warm is it in Porto?", "direction": "in", "decoding_id": null}, {"content_type": "real_time_user_audio_video_asset_pointer", "frames_asset_pointers": [], "audio_asset_pointer": {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1"}}]}`, all),
		chatGPTNode("think", "ask", "call", "assistant", `{"content_type": "thoughts", "thoughts": [{"summary": "Weather", "content": "I look it up"}], "source_analysis_msg_id": "x"}`, all),
		chatGPTNode("call", "think", "result", "assistant", `{"content_type": "code", "language": "unknown", "response_format_name": null, "text": "{\"q\": \"weather porto\"}"}`, `"metadata": {}, "recipient": "web.run", "channel": "commentary"`),
		chatGPTNode("result", "call", "recap", "tool", `{"content_type": "tether_browsing_display", "result": "", "summary": "18 degrees", "assets": null}`, all),
		chatGPTNode("recap", "result", "say", "assistant", `{"content_type": "reasoning_recap", "content": "Thought for 5s"}`, all),
		chatGPTNode("say", "recap", "", "assistant", text("18 degrees.\ue200cite\ue202turn0search0\ue201"), `"metadata": {}, "recipient": "all", "channel": "final"`),
	}
	return fmt.Sprintf(`[{"title": "Weather", "create_time": 1765000000.5, "update_time": 1765000100.0, "mapping": {%s}, "moderation_results": [], "current_node": "say", "plugin_ids": null,
 "conversation_id": %q, "conversation_template_id": null, "gizmo_id": null, "is_archived": false, "safe_urls": [], "default_model_slug": "gpt-5", "id": %q}]`, strings.Join(nodes, ",\n"), id, id)
}

// A large export of ChatGPT has its conversations in numbered files. What the person does
// not see is left out: the profile, the reasoning, the calls of tools and their results.
func TestShapeOfChatGPT(t *testing.T) {
	b := imported(t, exports.ChatGPT, "export.zip", zipped(t,
		"user.json", `{"id": "user-1", "email": "ann@example.com"}`, "message_feedback.json", "[]", "shared_conversations.json", "[]",
		"conversations-000.json", chatGPTShard("c-0"), "conversations-001.json", chatGPTShard("c-1"),
		"chat.html", "<html></html>", "file_1-audio.wav", "RIFF", "dalle-generations/file-2.webp", "RIFF"))
	const body = "---\n# Weather\n\n## User\n\nHow warm is it in Porto?\n\n## ChatGPT\n\n18 degrees.\n"
	if len(b.Pages) != 2 || !strings.HasSuffix(string(b.Pages[0].Content), body) || len(b.Facts) != 0 {
		t.Errorf("%s", b.Pages)
	}
}

const (
	claudeConversations = `[{"uuid": "0f8e5f8e-0000-4000-8000-000000000001", "name": "Trains", "summary": "", "created_at": "2026-03-01T09:00:00.000000Z", "updated_at": "2026-03-01T09:05:00.000000Z",
 "account": {"uuid": "a-1"}, "chat_messages": [
  {"uuid": "m-1", "text": "Is there a night train?", "content": [{"start_timestamp": "2026-03-01T09:00:00Z", "stop_timestamp": "2026-03-01T09:00:00Z", "flags": null, "type": "text", "text": "Is there a night train?", "citations": []}],
   "sender": "human", "created_at": "2026-03-01T09:00:00Z", "updated_at": "2026-03-01T09:00:00Z", "attachments": [{"file_name": "map.txt", "file_size": 5, "file_type": "txt", "extracted_content": "A map"}], "files": [{"file_uuid": "f-1", "file_name": "a.png"}], "parent_message_uuid": "00000000-0000-4000-8000-000000000000"},
  {"uuid": "m-2", "text": "", "content": [{"type": "thinking", "thinking": "hm", "summaries": [], "cut_off": false}, {"type": "tool_use", "name": "web_search", "input": {"query": "night train"}}, {"type": "tool_result", "name": "web_search", "content": [], "is_error": false}, {"type": "token_budget"}, {"type": "text", "text": "Yes, at 21:00.", "citations": []}],
   "sender": "assistant", "created_at": "2026-03-01T09:01:00Z", "attachments": [], "files": [], "parent_message_uuid": "m-1"}]}]`
	claudeProjectFile = `{"uuid": "p-1", "name": "Travel", "description": "", "is_private": true, "is_starter_project": false, "prompt_template": "Prefer trains.", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
 "creator": {"uuid": "a-1", "full_name": "Ann"}, "docs": [{"uuid": "d-1", "filename": "plan.md", "content": "Lisbon first", "created_at": "2026-01-01T00:00:00Z"}]}`
	claudeMemoryFile = `{"account_uuid": "a-1", "conversations_memory": "**Personal context**\n\nLives in Porto.", "project_memories": {"p-1": "Plans a journey."}, "memory_files": [{"path": "/areas/travel.md", "content": "# Travel\n\nLikes trains.\n", "updated_at": "2026-02-01T00:00:00Z"}]}`
	claudeDesignFile = `{"uuid": "g-1", "title": "Poster", "created_at": "2026-02-01T00:00:00Z", "updated_at": "2026-02-01T00:00:00Z", "project": {"uuid": "x", "name": "Posters"}, "messages": [
 {"uuid": "n-1", "role": "user", "created_at": "2026-02-01T00:00:00Z", "content": {"content": "Make it blue", "authorAccountUuid": "a-1", "attachments": []}},
 {"uuid": "n-2", "role": "assistant", "content": {"contentBlocks": [{"type": "thinking", "text": "hm"}, {"type": "tool_call", "toolCall": {"name": "write", "input": {}}}, {"type": "text", "text": "It is blue."}]}}]}`
)

// Claude's export was one archive with a list for each kind of item. Now it is a manifest and
// several archives, with a file for each project and memory. All forms have the same result.
func TestShapeOfClaude(t *testing.T) {
	users := `[{"uuid": "a-1", "full_name": "Ann", "email_address": "ann@example.com", "verified_phone_number": null}]`
	conversations := string(zipped(t, "conversations.json", claudeConversations))
	for name, data := range map[string][]byte{
		"lists":            zipped(t, "users.json", users, "conversations.json", claudeConversations, "projects.json", "["+claudeProjectFile+"]", "memories.json", "["+claudeMemoryFile+"]", "design_chats/g-1.json", claudeDesignFile),
		"a file each":      zipped(t, "users.json", users, "conversations.json", claudeConversations, "projects/p-1.json", claudeProjectFile, "memories/a-1.json", claudeMemoryFile, "design_chats/g-1.json", claudeDesignFile),
		"several archives": zipped(t, "manifest-1.json", `{"data_files": []}`, "conversations-000.zip", conversations, "projects-000.zip", string(zipped(t, "projects/p-1.json", claudeProjectFile)), "memories-000.zip", string(zipped(t, "memories/a-1.json", claudeMemoryFile)), "design_chats-000.zip", string(zipped(t, "design_chats/g-1.json", claudeDesignFile)), "light_metadata-000.zip", string(zipped(t, "users.json", users, "login_history.json", "[]"))),
	} {
		t.Run(name, func(t *testing.T) {
			b := imported(t, exports.Claude, "data-2026-03-02-batch-0000.zip", data)
			var all strings.Builder
			for _, p := range b.Pages {
				_, body, _ := strings.Cut(string(p.Content), "\n---\n")
				all.WriteString(body)
			}
			for _, want := range []string{
				"# Trains\n\n## User\n\nIs there a night train?\n\n## Claude\n\nYes, at 21:00.\n",
				"# Travel\n\n## Instructions\n\nPrefer trains.\n\n## plan.md\n\nLisbon first\n",
				"# Travel\n\nLikes trains.\n",
				"# Poster\n\n## User\n\nMake it blue\n\n## Claude\n\nIt is blue.\n",
			} {
				if !strings.Contains(all.String(), want) {
					t.Errorf("%q is not in\n%s", want, all.String())
				}
			}
			if pageAt(t, b, "knowledge/claude/areas/travel.md"); fmt.Sprint(values(b)) != "[Lives in Porto. Plans a journey.]" || len(b.Pages) != 4 || len(b.Skipped) != 0 {
				t.Errorf("%v, %v", values(b), b.Skipped)
			}
		})
	}
	// Each of the archives can be imported alone, and so can a file from it.
	for name, data := range map[string][]byte{
		"projects-000.zip": zipped(t, "projects/p-1.json", claudeProjectFile), "p-1.json": []byte(claudeProjectFile),
		"memories-000.zip": zipped(t, "memories/a-1.json", claudeMemoryFile), "memories.json": []byte("\ufeff[" + claudeMemoryFile + "]"),
	} {
		if b := imported(t, exports.Claude, name, data); len(b.Pages) != 1 {
			t.Errorf("%s: %v", name, b)
		}
	}
}

// mem0 answers a list with results, and its program OpenMemory exports an archive.
func TestShapeOfMem0(t *testing.T) {
	hosted := `{"count": 1, "next": null, "previous": null, "results": [{"id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e", "memory": "Drinks tea", "user_id": "ann", "agent_id": null, "metadata": {"type": "preference"}, "categories": ["food"], "created_at": "2026-01-01T00:00:00-08:00", "updated_at": "2026-01-01T00:00:00-08:00", "hash": "x"}]}`
	local := `{"user": {"id": "1", "user_id": "ann"}, "apps": [], "categories": [], "memories": [
 {"id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e", "user_id": "1", "app_id": null, "content": "Drinks tea", "metadata": {}, "state": "active", "created_at": "2026-01-01T00:00:00+00:00", "archived_at": null, "category_ids": []},
 {"id": "2", "content": "Drinks coffee", "state": "deleted"}], "memory_categories": [], "status_history": [], "access_controls": [], "export_meta": {"version": "1"}}`
	a := imported(t, exports.Mem0, "mem0.json", []byte(hosted))
	b := imported(t, exports.Mem0, "memories_export_ann.zip", zipped(t, "memories.json", local, "memories.jsonl.gz", "\x1f\x8b"))
	if fmt.Sprint(values(a)) != "[Drinks tea]" || fmt.Sprint(values(b)) != "[Drinks tea]" || a.Facts[0].Key != b.Facts[0].Key || len(b.Skipped) != 1 {
		t.Errorf("%v, %v", a, b)
	}
}

func TestShapeOfBasicMemory(t *testing.T) {
	const note = "---\ntitle: Coffee\ntype: note\ntags: [drinks]\npermalink: drinks/coffee\n---\n\n# Coffee\n\n## Observations\n- [method] Filter is clearer #brewing (tried twice)\n\n## Relations\n- relates_to [[Tea]]\n"
	b := imported(t, exports.BasicMemory, "basic-memory.zip", zipped(t, "main/README.md", "# Notes\n", "main/drinks/Coffee.md", note, "main/.bmignore", "x"))
	if got := pageAt(t, b, "knowledge/basic-memory/main/drinks/Coffee.md"); got != note || len(b.Pages) != 2 || len(b.Skipped) != 0 {
		t.Errorf("%v", b)
	}
}

// A vault can have archives as attachments, which are not opened.
func TestShapeOfObsidian(t *testing.T) {
	const note = "---\naliases: [me]\ntags:\n  - person\n---\n# Ann\n\n![[map.png]] [[Daily/2026-03-01|today]] #tag\n"
	b := imported(t, exports.Obsidian, "Vault.zip", zipped(t,
		"Vault/.obsidian/workspace.json", "{}", "Vault/.trash/Old.md", "old", "Vault/People/Ann.md", note, "Vault/Board.canvas", "{}",
		"Vault/backup.zip", "damaged", "__MACOSX/Vault/People/._Ann.md", "\x00"))
	if got := pageAt(t, b, "knowledge/obsidian/Vault/People/Ann.md"); got != note || len(b.Pages) != 1 || len(b.Skipped) != 2 {
		t.Errorf("%v", b)
	}
}

// Notion exports parts in an archive, with the ID of each page in its name. The folder around
// the pages has a new name in each export, so it is left out: a second export has the same
// paths.
func TestShapeOfNotion(t *testing.T) {
	const id, sub = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	export := func(block string) []byte {
		root := "Export-" + block + "/Private & Shared/"
		return zipped(t, "ExportBlock-"+block+"-Part-1.zip", string(zipped(t,
			"index.html", "<html></html>",
			root+"Plan (2026) "+id+".md", "# Plan (2026)\n\nOwner: Ann\n\n[Rooms](Plan%20(2026)/Rooms%20"+sub+".md)\n[Tasks](Plan%20(2026)/Tasks%20"+sub+".csv)\n![a map](Plan%20(2026)/map.png)\n",
			root+"Plan (2026)/Rooms "+sub+".md", "# Rooms\n",
			root+"Plan (2026)/Tasks "+sub+"_all.csv", "Name\n",
			root+"Plan (2026)/map.png", "PNG")))
	}
	for _, block := range []string{"11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"} {
		b := imported(t, exports.Notion, "Export.zip", export(block))
		pageAt(t, b, "knowledge/notion/Private & Shared/Plan (2026)/Rooms fedcba98.md")
		if got := pageAt(t, b, "knowledge/notion/Private & Shared/Plan (2026) 01234567.md"); !strings.Contains(got, "[Rooms](Plan%20%282026%29/Rooms%20fedcba98.md)") && !strings.Contains(got, "[Rooms](Plan%20(2026)/Rooms%20fedcba98.md)") {
			t.Errorf("%s", got)
		}
		if len(b.Pages) != 2 || len(b.Skipped) != 3 {
			t.Errorf("%v", b)
		}
	}
}
