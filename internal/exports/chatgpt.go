package exports

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// chatGPTMessage is a message in the export of ChatGPT.
type chatGPTMessage struct {
	Author  struct{ Role string }
	Content struct {
		Type  string `json:"content_type"`
		Parts []json.RawMessage
		Text  string
	}
	Recipient string // the name of a tool, or "all"
	Channel   string
	Metadata  struct {
		Hidden bool `json:"is_visually_hidden_from_conversation"`
		System bool `json:"is_user_system_message"`
	}
}

// shown reports whether the person sees the message. Calls of tools and reasoning are also
// messages of the assistant, but the person does not see them.
func (m *chatGPTMessage) shown() bool {
	return m != nil && (m.Author.Role == "user" || m.Author.Role == "assistant") &&
		(m.Recipient == "" || m.Recipient == "all") && m.Channel != "analysis" &&
		!m.Metadata.Hidden && !m.Metadata.System
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
			Message *chatGPTMessage
			Parent  string
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
		if !m.shown() {
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

// citation matches a mark in a text. ChatGPT shows a link in its place.
var citation = regexp.MustCompile(`\x{e200}[^\x{e200}\x{e201}]*\x{e201}`)

// chatGPTPart returns the text of a part of a message.
func chatGPTPart(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return citation.ReplaceAllString(text, "")
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
