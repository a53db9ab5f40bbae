package space

import "time"

// Review is a file that an AI changed and that waits for a person's decision.
type Review struct {
	Path Path `json:"path"`
	// Blob and Mode are what waits, at the commit Head; Blob is empty if the
	// file was deleted.
	Blob BlobID   `json:"blob,omitempty"`
	Mode Mode     `json:"mode"`
	Head CommitID `json:"head"`
	// Was and WasMode are what a person last knew, which an undo puts back; empty if
	// they knew nothing. Base is a commit that has it at the path, if one is known.
	Was     BlobID   `json:"was,omitempty"`
	WasMode Mode     `json:"was_mode"`
	Base    CommitID `json:"base,omitempty"`
	// Taken reports that something else is at the path or in its way, which an undo
	// deletes.
	Taken bool `json:"taken,omitempty"`
	// Commit changed it last, by Tool of Client. If Satchel did not make the commit,
	// Tool is empty, or Elsewhere if the commit's trailers name a tool.
	Commit CommitID  `json:"commit"`
	Tool   string    `json:"tool,omitempty"`
	Client string    `json:"client,omitempty"`
	When   time.Time `json:"when"`
}

// ReviewDecision is what a person decided about a Review.
type ReviewDecision struct {
	Path   Path     `json:"path"`
	Blob   BlobID   `json:"blob,omitempty"`
	Commit CommitID `json:"commit"` // made the content
	Client string   `json:"client,omitempty"`
	Kept   bool     `json:"kept"` // or else undone
	By     UserID   `json:"-"`
	// Who is the name of the person; only the service sets it.
	Who string    `json:"by"`
	At  time.Time `json:"at"`
}
