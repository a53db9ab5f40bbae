package tools

import (
	"encoding/json"

	"satchel/internal/service"
	"satchel/internal/space"
)

// Caller describes the client that calls a tool, and how answers to this client are presented.
type Caller struct {
	service.Actor
	// ChatGPT reports that the caller accepts only the versions of search and fetch that
	// ChatGPT's deep research requires.
	ChatGPT bool
	// Origin is the URL at which the caller reached the server. URLs in answers begin with
	// it. Empty means Options.PublicURL.
	Origin string
	// Seen is shared by the calls that make up one answer. It may be nil.
	Seen *Seen
	// Conversation is shared by the calls of one conversation. It is nil for a client without
	// sessions.
	Conversation *Conversation
}

// Tool describes one tool as clients list it.
type Tool struct {
	Name         string
	Title        string
	Description  string // under 2,048 characters; its first words say when to call the tool
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage // nil if the answer is only text
	Scope        space.Scope     // the scope that a caller needs
	// The hints of MCP's tool annotations. All four are always sent.
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	OpenWorld   bool
}

// Content is one part of an answer: text, or an image.
type Content struct {
	Text  string
	Image []byte // an image, or any binary content of a resource; nil for a text
	MIME  string // the type of Image; in a resource, also of Text
}

// Result is a tool's answer.
type Result struct {
	Content []Content
	// Structured is sent as structuredContent if the tool has an OutputSchema. Its JSON is
	// then also the only text content.
	Structured json.RawMessage
	// Meta is sent as _meta["satchel/result"].
	Meta map[string]any
	// IsError reports that the call failed.
	IsError bool
}

// Progress reports how far a call is. The reports come in order. total is zero if it is unknown.
// A tool may report often, because the function limits the rate.
type Progress func(done, total float64, message string)

// Resource is a document of the space that clients can list and read:
// resources/*.md as satchel://resources/…, and skills as skill://….
type Resource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIME        string
	Size        int64
}

// ResourceTemplate is a URI template of documents (RFC 6570).
type ResourceTemplate struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIME        string
}

// Prompt is a prompt that a person can invoke.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []PromptArgument
}

// PromptArgument is one argument of a Prompt.
type PromptArgument struct {
	Name        string
	Description string
	Required    bool
}

// Skill is an entry of the skills extension (SEP-2640).
type Skill struct {
	URI         string // skill://<path>/SKILL.md
	Frontmatter map[string]any
	Resources   []SkillResource
}

// SkillResource is one file of a skill.
type SkillResource struct {
	URI    string
	Digest string // "sha256:<hex>"
	Size   int64
}
