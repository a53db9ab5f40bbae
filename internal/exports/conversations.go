package exports

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/facts"
	"satchel/internal/fault"
)

// maxItem limits the bytes of one conversation in JSON.
const maxItem = 64 << 20

// conversationsFormat distinguishes conversations.json of ChatGPT and of Claude by the
// first conversation. It is empty for other JSON.
func conversationsFormat(r io.Reader) (format string, err error) {
	done := errors.New("done")
	err = eachItem(r, func(raw json.RawMessage) error {
		var has struct {
			Mapping, Messages json.RawMessage
			Chat              json.RawMessage `json:"chat_messages"`
		}
		if json.Unmarshal(raw, &has) == nil {
			switch {
			case has.Mapping != nil:
				format = ChatGPT
			case has.Chat != nil:
				format = Claude
			}
		}
		return done
	})
	if errors.Is(err, done) {
		err = nil
	}
	return format, err
}

// eachItem calls f for each item of a JSON array.
func eachItem(r io.Reader, f func(json.RawMessage) error) error {
	wrong := func(err error) error {
		if code := fault.CodeOf(err); code == fault.TooLarge {
			return err
		}
		return damaged(err)
	}
	part := &itemReader{r: r}
	d := json.NewDecoder(bufio.NewReaderSize(part, 1<<16))
	t, err := d.Token()
	if err != nil {
		return wrong(err)
	}
	if t != json.Delim('[') {
		return fault.New(fault.Invalid, "The file is not a list in JSON. Is it the export of another program?")
	}
	for d.More() {
		var raw json.RawMessage
		part.read = 0
		if err := d.Decode(&raw); err != nil {
			return wrong(err)
		}
		if err := f(raw); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return wrong(err)
	}
	// Reading to the end checks the sum in the archive.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return wrong(err)
	}
	return nil
}

// itemReader limits what is read for one item, because memory holds the whole item.
type itemReader struct {
	r    io.Reader
	read int
}

func (r *itemReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.read += n; r.read > maxItem {
		return n, fault.New(fault.TooLarge, "A conversation in the file is larger than the %s that it may have.", bytesize.Text(maxItem))
	}
	return n, err
}

// assistant reads the archive of ChatGPT or Claude.
func (b *builder) assistant(a *archive) error {
	read := 0
	for _, f := range a.files {
		var item func(json.RawMessage) error
		switch name := base(f.Name); {
		case name == "conversations.json", isNumbered(name):
			item = b.conversation
		case name == "projects.json" && b.Format == Claude:
			item = b.claudeProject
		case name == "memories.json" && b.Format == Claude:
			item = b.claudeMemory
		case name == "users.json", name == "user.json":
			continue // the account
		default:
			b.skip(f.Name, "Only conversations, projects and memories are imported.")
			continue
		}
		r, err := a.reader(f)
		if err != nil {
			return err
		}
		read++
		err = eachItem(r, item)
		r.Close()
		if err != nil {
			return err
		}
	}
	if read == 0 {
		return fault.New(fault.Invalid, "The archive has no conversations.json. Is it the export of another program?")
	}
	return nil
}

// isNumbered reports whether a file has a part of the conversations, as large exports of
// ChatGPT do: conversations-000.json.
func isNumbered(name string) bool {
	n, ok := strings.CutPrefix(name, "conversations-")
	n, json := strings.CutSuffix(n, ".json")
	_, err := strconv.ParseUint(n, 10, 32)
	return ok && json && err == nil
}

// message is one message of a conversation.
type message struct{ who, text string }

// talk is a conversation of any assistant.
type talk struct {
	id, name         string
	created, updated time.Time
	messages         []message
}

func (b *builder) conversation(raw json.RawMessage) error {
	var t talk
	var err error
	if b.Format == ChatGPT {
		t, err = chatGPTTalk(raw)
	} else {
		t, err = claudeTalk(raw)
	}
	switch {
	case err != nil:
		b.skip(cmp.Or(title(t.name, ""), "a conversation"), "Its fields are not as this format has them.")
		return nil
	case t.id == "":
		b.skip(title(t.name, "a conversation"), "It has no ID.")
		return nil
	case len(t.messages) == 0:
		b.skip(title(t.name, "a conversation"), "It has no messages.")
		return nil
	}
	return b.talk(t)
}

// talk adds the page of a conversation. The path has no title, because people rename
// conversations.
func (b *builder) talk(t talk) error {
	name := title(t.name, "Untitled conversation")
	assistant := map[string]string{ChatGPT: "ChatGPT", Claude: "Claude"}[b.Format]
	var body strings.Builder
	fmt.Fprintf(&body, "# %s\n", name)
	for i, m := range t.messages {
		who := m.who
		if who != "User" {
			who = assistant
		}
		if body.Len()+len(m.text)+1000 > b.limits.Page {
			fmt.Fprintf(&body, "\nThe import left out the last %d messages, because the page would be too large.\n", len(t.messages)-i)
			b.skip(name, fmt.Sprintf("The last %d messages are left out, because the page would be too large.", len(t.messages)-i))
			break
		}
		fmt.Fprintf(&body, "\n## %s\n\n%s\n", who, m.text)
	}
	fields := []facts.Field{{Key: "title", Value: name}, {Key: "type", Value: "conversation"}, {Key: "source", Value: b.Format}, {Key: "source_id", Value: title(t.id, "")}}
	folder, day := "undated", ""
	if !t.created.IsZero() {
		folder, day = t.created.Format("2006"), t.created.Format(time.DateOnly)+"-"
		fields = append(fields, facts.Field{Key: "created", Value: facts.Raw(t.created.Format(time.DateOnly))})
	}
	if !t.updated.IsZero() {
		fields = append(fields, facts.Field{Key: "updated", Value: facts.Raw(t.updated.Format(time.DateOnly))})
	}
	p := "knowledge/conversations/" + b.Format + "/" + folder + "/" + day + short(t.id, 12) + ".md"
	return b.page(name, p, generated(body.String(), fields...))
}

func chatGPTTalk(raw json.RawMessage) (talk, error) {
	var c struct {
		ID             string
		ConversationID string `json:"conversation_id"`
		Title          string
		Created        json.RawMessage `json:"create_time"`
		Updated        json.RawMessage `json:"update_time"`
		Current        string          `json:"current_node"`
		Mapping        map[string]struct {
			Message *struct {
				Author  struct{ Role string }
				Created json.RawMessage `json:"create_time"`
				Content struct {
					Type  string `json:"content_type"`
					Parts []json.RawMessage
					Text  string
				}
				Metadata struct {
					Hidden bool `json:"is_visually_hidden_from_conversation"`
				}
			}
			Parent string
		}
	}
	err := json.Unmarshal(raw, &c)
	t := talk{id: cmp.Or(c.ID, c.ConversationID), name: c.Title, created: unixTime(c.Created), updated: unixTime(c.Updated)}
	if err != nil {
		return t, err
	}
	// The branch that the person sees ends at the current node.
	var branch []string
	seen := map[string]bool{}
	for id := c.Current; id != "" && !seen[id]; id = c.Mapping[id].Parent {
		seen[id] = true
		branch = append(branch, id)
	}
	slices.Reverse(branch)
	for _, id := range branch {
		m := c.Mapping[id].Message
		if m == nil || m.Metadata.Hidden || m.Author.Role != "user" && m.Author.Role != "assistant" {
			continue
		}
		var texts []string
		switch m.Content.Type {
		case "text", "multimodal_text":
			for _, p := range m.Content.Parts {
				texts = append(texts, chatGPTPart(p))
			}
		case "code":
			texts = append(texts, "```\n"+m.Content.Text+"\n```")
		}
		t.add(m.Author.Role == "user", texts)
	}
	return t, nil
}

// chatGPTPart returns the text of a part of a message.
func chatGPTPart(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var other struct {
		Type string `json:"content_type"`
		Text string
	}
	if json.Unmarshal(raw, &other) != nil {
		return ""
	}
	if other.Text == "" && strings.HasPrefix(other.Type, "image") {
		return "(An image is left out.)"
	}
	return other.Text
}

func (t *talk) add(user bool, texts []string) {
	var kept []string
	for _, text := range texts {
		if text = clean(text); text != "" {
			kept = append(kept, text)
		}
	}
	if len(kept) == 0 {
		return
	}
	who := "Assistant"
	if user {
		who = "User"
	}
	t.messages = append(t.messages, message{who, strings.Join(kept, "\n\n")})
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
			Content []struct{ Type, Text string }
		} `json:"chat_messages"`
	}
	err := json.Unmarshal(raw, &c)
	t := talk{id: c.UUID, name: c.Name, created: isoTime(c.Created), updated: isoTime(c.Updated)}
	if err != nil {
		return t, err
	}
	for _, m := range c.Messages {
		var texts []string
		for _, p := range m.Content {
			if p.Type == "text" {
				texts = append(texts, p.Text)
			}
		}
		if len(texts) == 0 {
			texts = []string{m.Text}
		}
		t.add(m.Sender == "human", texts)
	}
	return t, nil
}

// claudeProject adds the page of a project.
func (b *builder) claudeProject(raw json.RawMessage) error {
	var c struct {
		UUID, Name, Description string
		Created                 string `json:"created_at"`
		Prompt                  string `json:"prompt_template"`
		Docs                    []struct{ Filename, Content string }
	}
	err := json.Unmarshal(raw, &c)
	name := title(c.Name, "Untitled project")
	if err != nil || c.UUID == "" {
		b.skip(name, "Its fields are not as this format has them.")
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

// claudeMemory adds the facts of an account's memory.
func (b *builder) claudeMemory(raw json.RawMessage) error {
	var c struct {
		All      string            `json:"conversations_memory"`
		Projects map[string]string `json:"project_memories"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		b.skip("memories.json", "Its fields are not as this format has them.")
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
	return nil
}

// unixTime reads seconds since 1970, which may have a fraction. It is zero for other values.
func unixTime(raw json.RawMessage) time.Time {
	f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || math.IsNaN(f) || f <= 0 || f > 4102444800 { // the year 2100
		return time.Time{}
	}
	return time.Unix(int64(f), 0).UTC()
}

func isoTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		return time.Time{}
	}
	return t.UTC()
}
