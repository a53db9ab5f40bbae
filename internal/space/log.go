package space

import "time"

// LogQuery selects commits of a space's history. A filter with its zero value selects all commits.
type LogQuery struct {
	// From is the first commit of the listing. Empty means head.
	From CommitID `json:"from,omitempty"`
	// Path keeps commits that changed the file, or a file under the directory.
	Path Path `json:"path,omitempty"`
	// Tool and Client keep commits that they made. Only commits that Satchel made have a
	// known tool and client. A client name without a version (name for name/1.2) matches
	// every version.
	Tool   string `json:"tool,omitempty"`
	Client string `json:"client,omitempty"`
	// Tools keeps commits that any of these tools made. Nil keeps all.
	Tools []string `json:"tools,omitempty"`
	// Author keeps commits of the person with this name.
	Author string `json:"author,omitempty"`
	// Since and Until keep commits from Since until before Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// After continues a listing. It is the last commit of the previous page.
	After CommitID `json:"after,omitempty"`
	// Limit is the most commits to return. Zero means 50, and the maximum is 1,000.
	Limit int `json:"limit,omitempty"`
}
