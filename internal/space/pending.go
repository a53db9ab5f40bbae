package space

import "time"

// PendingFile is a file of a sandbox that could not be committed. It is kept until it can
// be committed or a person discards it.
type PendingFile struct {
	Path  string    `json:"path"` // as the sandbox has it: any bytes, and perhaps a secret
	Mode  Mode      `json:"mode"`
	Size  int64     `json:"size"`           // bytes
	Why   string    `json:"why"`            // why the file was not committed
	Lost  string    `json:"lost,omitempty"` // why its content is not kept
	Since time.Time `json:"since"`

	// Only the service sets the following fields, for files that it inspects. Shown is Path
	// without likely secrets. Secrets are the secrets that the space does not allow.
	// Allowed reports that the space allows every secret in the file.
	Shown   string          `json:"shown,omitempty"`
	Secrets []PendingSecret `json:"secrets,omitempty"`
	Allowed bool            `json:"allowed,omitempty"`
}

// PendingSecret is a place in a PendingFile that looks like a secret.
type PendingSecret struct {
	Line        int    `json:"line"` // 0: the file's name
	Rule        string `json:"rule"`
	Description string `json:"description"`
	Fingerprint string `json:"fingerprint"`
}
