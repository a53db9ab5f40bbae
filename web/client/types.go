package client

import "time"

// Source is a source of the library.
type Source struct {
	ID      string    `json:"id"`
	Label   string    `json:"label"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"` // "new", "syncing", "ready" or "failed"
	Path    string    `json:"path"`
	Commit  string    `json:"commit,omitempty"`
	Files   int       `json:"files"`
	Updated time.Time `json:"updated,omitzero"`
	Age     *int64    `json:"age,omitempty"` // seconds since the last update; nil if there was none
	Problem string    `json:"problem,omitempty"`
}

// Run is one sync of a source.
type Run struct {
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	State   string    `json:"state"` // "running", "done" or "failed"
	Started time.Time `json:"started"`
	Problem string    `json:"problem,omitempty"`
}

// SyncOptions say how sources are synced.
type SyncOptions struct {
	// Reset makes the snapshot again, and fetches every file of a synced source again.
	Reset bool `json:"reset,omitempty"`
	// Confirm lets the sync of a synced source remove most of its files.
	Confirm bool `json:"confirm,omitempty"`
}

// Query is a search. The server chooses the values of zero fields.
type Query struct {
	Query     string   `json:"query"`
	Limit     int      `json:"limit,omitempty"`
	Source    string   `json:"source,omitempty"`
	Since     string   `json:"since,omitempty"`
	Paths     []string `json:"paths,omitempty"`
	MaxTokens int      `json:"maxTokens,omitempty"`
}

// Results are what was found, the best first.
type Results struct {
	Paths       []string `json:"files"` // the paths of the results, each once
	Matches     []Match  `json:"matches"`
	Results     []Result `json:"results"`
	Total       int      `json:"total"`
	Truncated   bool     `json:"truncated"`
	Notes       []string `json:"notes,omitempty"`
	Suggestions []string `json:"suggestions,omitempty"`
}

// ResultsAndFiles are results, and the files of the best results.
type ResultsAndFiles struct {
	Results
	Files []File `json:"files"`
}

// Match is a line that shows why a page was found.
type Match struct {
	Path    string `json:"path"`
	Line    int    `json:"lineNumber"`
	Content string `json:"content"`
}

// Result is one page that was found. Its paths are relative to the library.
type Result struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	URL         string   `json:"url,omitempty"`
	Path        string   `json:"path"`
	Lines       string   `json:"lines,omitempty"`
	Heading     string   `json:"heading,omitempty"`
	Description string   `json:"description,omitempty"`
	Snippet     string   `json:"snippet"`
	Score       float64  `json:"score"`
	Source      string   `json:"source"`
	Version     string   `json:"version,omitempty"`
	Lang        string   `json:"lang,omitempty"`
	Date        string   `json:"date,omitempty"`
	ETag        string   `json:"etag,omitempty"`
	Also        []string `json:"also,omitempty"`
	AlsoTotal   int      `json:"also_total,omitempty"`
	Related     []string `json:"related,omitempty"`
}

// File is one path that was read.
type File struct {
	Path      string   `json:"path"`
	Kind      string   `json:"kind"` // "file", "list" or "error"
	Title     string   `json:"title,omitempty"`
	Content   string   `json:"content"`
	Lines     int      `json:"lines,omitempty"`
	ETag      string   `json:"etag,omitempty"`
	Truncated bool     `json:"truncated"`
	Next      string   `json:"next,omitempty"`       // the path to read next, for the rest
	Matches   int      `json:"matchCount,omitempty"` // matching lines, after SearchAndRead
	Error     *Problem `json:"error,omitempty"`
}

// Problem says why a part of an answer is missing.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Ran is the result of a command.
type Ran struct {
	Command  string   `json:"command"`
	Stdout   string   `json:"stdout"`
	Stderr   string   `json:"stderr"`
	Cut      int64    `json:"cut,omitempty"` // bytes of Stdout and Stderr that are left out
	ExitCode int      `json:"exitCode"`
	Signal   string   `json:"signal,omitempty"`
	End      string   `json:"end"`
	Duration float64  `json:"duration"` // seconds
	Notes    []string `json:"notes,omitempty"`
}

// ShellResults holds the results of commands that ran in order.
type ShellResults struct {
	Results   []Ran    `json:"results"`
	Fresh     bool     `json:"fresh"` // nothing of earlier calls was in the sandbox
	SessionID string   `json:"sessionId,omitempty"`
	Error     *Problem `json:"error,omitempty"` // why the other commands did not run
}

// Fact is a fact of a space.
type Fact struct {
	Path          string   `json:"path"`
	Type          string   `json:"type,omitempty"`
	Key           string   `json:"key,omitempty"`
	Value         string   `json:"value,omitempty"`
	Cut           bool     `json:"cut,omitempty"` // Value is only the beginning
	Source        string   `json:"source,omitempty"`
	Confidence    *float64 `json:"confidence,omitempty"`
	ByPerson      bool     `json:"confirmedByPerson"`
	FirstSeen     string   `json:"firstSeen,omitempty"`
	LastConfirmed string   `json:"lastConfirmed,omitempty"`
	Expires       string   `json:"expires,omitempty"`
	Expired       bool     `json:"expired"`
	Problem       string   `json:"problem,omitempty"` // why the file is not a valid fact
	ETag          string   `json:"etag"`
}

// Statement is a fact to save.
type Statement struct {
	Type       string   `json:"type"`
	Key        string   `json:"key"`
	Value      string   `json:"value"`
	Confidence *float64 `json:"confidence,omitempty"` // default: 1 if Explicit, otherwise 0.7
	Explicit   bool     `json:"explicit,omitempty"`   // the user said it
	Expires    string   `json:"expires,omitempty"`    // the last day, such as 2027-01-31
	// BaseETag is the version that the fact must have; "none" if it must not exist.
	BaseETag string `json:"baseEtag,omitempty"`
}

// Remembered says what became of a statement.
type Remembered struct {
	Type    string `json:"type"`
	Key     string `json:"key"`
	Outcome string `json:"outcome"` // added, replaced, confirmed, unchanged, kept, invalid, refused or stale
	Before  *Fact  `json:"before,omitempty"`
	Why     string `json:"why,omitempty"`
	Alike   []Fact `json:"alike,omitempty"`
}
