package space

import "time"

// LogQuery selects commits of a space's history. Zero values select all.
type LogQuery struct {
	// From is the commit to begin at; empty is head.
	From CommitID `json:"from,omitempty"`
	// Path keeps commits that changed the file, or a file under the directory.
	Path Path `json:"path,omitempty"`
	// Tool and Client keep commits that they made, which is known only of commits
	// that Satchel made. A client named without its version, as name of name/1.2,
	// matches every version.
	Tool   string `json:"tool,omitempty"`
	Client string `json:"client,omitempty"`
	// Tools keeps commits that one of them made; nil keeps all.
	Tools []string `json:"tools,omitempty"`
	// Since and Until keep commits of a time: not before Since, and before Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// After continues a listing: the last commit of the page before.
	After CommitID `json:"after,omitempty"`
	// Limit bounds the answer; zero is 50, at most 1,000.
	Limit int `json:"limit,omitempty"`
}
