package space

import "time"

// Review is a file that an AI changed and that waits for a person's decision.
type Review struct {
	Path Path `json:"path"`
	// Blob and Mode are the content that waits, at the commit Head. Blob is empty if the AI
	// deleted the file.
	Blob BlobID   `json:"blob,omitempty"`
	Mode Mode     `json:"mode"`
	Head CommitID `json:"head"`
	// Was and WasMode are the content that a person last knew. An undo restores it. They
	// are empty if no person knew the file. Base is a commit with that content at the path,
	// if one is known.
	Was     BlobID   `json:"was,omitempty"`
	WasMode Mode     `json:"was_mode"`
	Base    CommitID `json:"base,omitempty"`
	// Taken reports that something else is at the path or blocks it. An undo deletes what is there.
	Taken bool `json:"taken,omitempty"`
	// Commit is the last change to the file. Tool and Client made it. If Satchel did not make
	// the commit, Tool is empty, or Elsewhere if the commit's trailers name a tool.
	Commit CommitID  `json:"commit"`
	Tool   string    `json:"tool,omitempty"`
	Client string    `json:"client,omitempty"`
	When   time.Time `json:"when"`
}

// ReviewDecision is what a person decided about a Review.
type ReviewDecision struct {
	Path   Path     `json:"path"`
	Blob   BlobID   `json:"blob,omitempty"`
	Commit CommitID `json:"commit"` // the commit that made the content
	Client string   `json:"client,omitempty"`
	Kept   bool     `json:"kept"` // whether the person kept the change; otherwise they undid it
	By     UserID   `json:"-"`
	// Who is the name of the person. Only the service sets it.
	Who string    `json:"by"`
	At  time.Time `json:"at"`
}
