package semantic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// Identity is everything that a vector depends on beside its text. Two that
// differ make vectors that cannot be compared.
type Identity struct {
	// Model is the model's name at the endpoint or on the machine.
	Model string `json:"model"`
	// Dimensions is the requested length of vectors; 0: the model's own.
	Dimensions int `json:"dimensions,omitempty"`
	// QueryPrefix and DocumentPrefix are put before texts, as some models want.
	QueryPrefix    string `json:"query_prefix,omitempty"`
	DocumentPrefix string `json:"document_prefix,omitempty"`
	// MaxChars is how many characters of a text are embedded.
	MaxChars int `json:"max_chars,omitempty"`
}

// text is the identity as it is stored.
func (id Identity) text() string {
	b, err := json.Marshal(id)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(b)
}

// slug names the identity in a file's name.
func (id Identity) slug() string {
	h := sha256.Sum256([]byte(id.text()))
	return hex.EncodeToString(h[:6])
}

// Kind is the kind of a text, for models that distinguish queries and documents.
type Kind int

// The kinds.
const (
	Document Kind = iota
	Search
)

// Embedder makes vectors of texts. It may be called concurrently.
type Embedder interface {
	// Identity identifies the configured model.
	Identity() Identity
	// Embed returns a vector for each text, in order, all of one length, in the
	// model of id: the configured one, or one from before, whose vectors still
	// answer. It may fail with ErrInput, ErrVector or any other error; Documents
	// are tried again by the embedder as it sees fit, a Search once.
	Embed(ctx context.Context, id Identity, kind Kind, texts []string) ([][]float32, error)
}

// Errors that retries do not fix; all others of an Embedder may be temporary.
var (
	// ErrInput means that the model refuses a text: fewer or shorter ones may
	// pass.
	ErrInput = errors.New("the embedding model refuses the text")
	// ErrVector means that an answer holds no usable vector.
	ErrVector = errors.New("the embedding model's answer is no usable vector")
	// ErrDimensions means that vectors have another length than those before.
	ErrDimensions = errors.New("the embedding model's vectors have another length than before")
)
