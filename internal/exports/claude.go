package exports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"satchel/internal/facts"
)

// The kinds of items in Claude's export. Older exports have a file with a list for each kind,
// and newer ones a file for each item.
const (
	claudeChat    = "chat"
	claudeDesign  = "design chat"
	claudeProject = "project"
	claudeMemory  = "memory"
)

// claudeKind returns the kind of an item according to its keys, or "" for an item of another
// program.
func claudeKind(raw json.RawMessage) string {
	var has map[string]json.RawMessage
	if json.Unmarshal(raw, &has) != nil {
		return ""
	}
	switch {
	case has["chat_messages"] != nil:
		return claudeChat
	case has["conversations_memory"] != nil, has["project_memories"] != nil, has["memory_files"] != nil:
		return claudeMemory
	case has["uuid"] == nil:
	case has["docs"] != nil, has["prompt_template"] != nil:
		return claudeProject
	case has["messages"] != nil:
		return claudeDesign
	}
	return ""
}

// claudeItem adds an item of Claude's export.
func (b *builder) claudeItem(raw json.RawMessage) error {
	switch claudeKind(raw) {
	case claudeProject:
		return b.claudeProject(raw)
	case claudeMemory:
		return b.claudeMemory(raw)
	case claudeDesign:
		t, err := claudeDesignTalk(raw)
		return b.conversation(t, err)
	}
	t, err := claudeTalk(raw)
	return b.conversation(t, err)
}

// isClaudeFile reports whether a file of the archive has items of Claude's export other than
// conversations (see isConversations).
func isClaudeFile(name string) bool {
	switch base(name) {
	case "projects.json", "memories.json":
		return true
	}
	switch base(path.Dir(name)) {
	case "projects", "memories", "design_chats":
		return path.Ext(name) == ".json"
	}
	return false
}

// claudePart is a part of a message.
type claudePart struct{ Type, Text string }

// claudeTexts returns the texts of the parts that the person sees as text. If there are no such
// parts, it returns the given text.
func claudeTexts(parts []claudePart, text string) (texts []string) {
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) == 0 {
		texts = []string{text}
	}
	return texts
}

func claudeTalk(raw json.RawMessage) (talk, error) {
	var c struct {
		UUID     string
		Name     string
		Created  string `json:"created_at"`
		Updated  string `json:"updated_at"`
		Messages []struct {
			Sender  string
			Text    string
			Content []claudePart
		} `json:"chat_messages"`
	}
	err := json.Unmarshal(raw, &c)
	t := talk{id: c.UUID, name: c.Name, created: isoTime(c.Created), updated: isoTime(c.Updated)}
	if err != nil {
		return t, err
	}
	for _, m := range c.Messages {
		t.add(m.Sender == "human", claudeTexts(m.Content, m.Text))
	}
	return t, nil
}

// claudeDesignTalk reads a conversation about a design.
func claudeDesignTalk(raw json.RawMessage) (talk, error) {
	var c struct {
		UUID     string
		Title    string
		Created  string `json:"created_at"`
		Updated  string `json:"updated_at"`
		Messages []struct {
			Role    string
			Content struct {
				Content string
				Parts   []claudePart `json:"contentBlocks"`
			}
		}
	}
	err := json.Unmarshal(raw, &c)
	t := talk{id: c.UUID, name: c.Title, created: isoTime(c.Created), updated: isoTime(c.Updated)}
	if err != nil {
		return t, err
	}
	for _, m := range c.Messages {
		t.add(m.Role != "assistant", claudeTexts(m.Content.Parts, m.Content.Content))
	}
	return t, nil
}

// claudeProject adds the page of a project.
func (b *builder) claudeProject(raw json.RawMessage) error {
	var c struct {
		UUID, Name, Description string
		Prompt                  string `json:"prompt_template"`
		Docs                    []struct{ Filename, Content string }
	}
	err := json.Unmarshal(raw, &c)
	name := title(c.Name, "Untitled project")
	if err != nil || c.UUID == "" {
		b.skip(name, wrongFields)
		return nil
	}
	var body strings.Builder
	fmt.Fprintf(&body, "# %s\n", name)
	part := func(heading, text string) {
		if text = clean(text); text != "" {
			fmt.Fprintf(&body, "\n## %s\n\n%s\n", heading, text)
		}
	}
	part("Description", c.Description)
	part("Instructions", c.Prompt)
	for _, d := range c.Docs {
		part(title(d.Filename, "Document"), d.Content)
	}
	return b.page(name, "knowledge/projects/claude/"+short(c.UUID, 12)+".md", generated(body.String(),
		facts.Field{Key: "title", Value: name}, facts.Field{Key: "type", Value: "project"}, facts.Field{Key: "source", Value: Claude}, facts.Field{Key: "source_id", Value: title(c.UUID, "")}))
}

// claudeMemory adds the facts and the pages of an account's memory.
func (b *builder) claudeMemory(raw json.RawMessage) error {
	var c struct {
		All      string                           `json:"conversations_memory"`
		Projects map[string]string                `json:"project_memories"`
		Files    []struct{ Path, Content string } `json:"memory_files"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		b.skip("the memory of the account", wrongFields)
		return nil
	}
	if err := b.sentences(c.All); err != nil {
		return err
	}
	for _, id := range sortedKeys(c.Projects) {
		if err := b.sentences(c.Projects[id]); err != nil {
			return err
		}
	}
	for _, f := range c.Files {
		text := clean(f.Content)
		if text == "" {
			continue
		}
		name := strings.TrimSuffix(strings.TrimLeft(clean(f.Path), "/"), ".md")
		err := b.page(f.Path, "knowledge/claude/"+name+".md", generated(text+"\n",
			facts.Field{Key: "title", Value: title(cmp.Or(base(name), "Memory"), "Memory")}, facts.Field{Key: "type", Value: "memory"}, facts.Field{Key: "source", Value: Claude}))
		if err != nil {
			return err
		}
	}
	return nil
}
