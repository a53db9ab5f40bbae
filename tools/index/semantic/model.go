package semantic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// Identity holds everything besides the text that a vector depends on. Vectors of different
// identities cannot be compared.
type Identity struct {
	// Model is the model's name at the endpoint or on the machine.
	Model string `json:"model"`
	// Dimensions is the requested length of vectors; 0: the model's own.
	Dimensions int `json:"dimensions,omitempty"`
	// QueryPrefix and DocumentPrefix are added before texts, because some models require a
	// prefix.
	QueryPrefix    string `json:"query_prefix,omitempty"`
	DocumentPrefix string `json:"document_prefix,omitempty"`
	// MaxChars is how many characters of a text are embedded.
	MaxChars int `json:"max_chars,omitempty"`
}

// text returns the identity as it is stored.
func (id Identity) text() string {
	b, err := json.Marshal(id)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(b)
}

// slug returns a name of the identity for the names of files.
func (id Identity) slug() string {
	h := sha256.Sum256([]byte(id.text()))
	return hex.EncodeToString(h[:6])
}

// Kind is the kind of a text. Some models distinguish queries and documents.
type Kind int

const (
	Document Kind = iota
	Search
)

// Embedder creates vectors of texts. It may be called concurrently.
type Embedder interface {
	// Identity identifies the configured model.
	Identity() Identity
	// Embed returns a vector for each text, in order, all of the same length. id is the
	// configured model or an earlier model whose vectors still answer. Embed may fail with
	// ErrInput, ErrVector or any other error. It decides itself how often to retry documents,
	// but calls the model only once for a search.
	Embed(ctx context.Context, id Identity, kind Kind, texts []string) ([][]float32, error)
}

// Errors that retries do not fix. Any other error of an Embedder may be temporary.
var (
	// ErrInput means that the model refuses a text. It may accept fewer or shorter texts.
	ErrInput = errors.New("the embedding model refuses the text")
	// ErrVector means that an answer does not contain a usable vector.
	ErrVector = errors.New("the embedding model's answer is no usable vector")
	// ErrDimensions means that the length of the vectors has changed.
	ErrDimensions = errors.New("the embedding model's vectors have another length than before")
)
