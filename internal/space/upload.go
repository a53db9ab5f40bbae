package space

// UploadedFile is a file of an upload. The JSON is part of the command line's contract.
type UploadedFile struct {
	Name string `json:"name"`
	// Path is the page that the file became. It is empty if the file was left out.
	Path Path `json:"path,omitempty"`
	// Reason says why the file was left out, such as needs_pandoc, and Problem what to do.
	Reason  string `json:"reason,omitempty"`
	Problem string `json:"problem,omitempty"`
}
