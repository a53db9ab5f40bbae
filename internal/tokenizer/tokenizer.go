// Package tokenizer counts the tokens of a text exactly, with the vocabulary o200k_base.
// Code that limits a text uses [satchel/tools/index/present.EstimateTokens] instead, which needs
// no vocabulary.
package tokenizer

import "github.com/tiktoken-go/tokenizer/codec"

// Vocabulary is the name of the vocabulary.
const Vocabulary = "o200k_base"

// Counter counts tokens. It is safe for concurrent use.
type Counter struct{ codec *codec.Codec }

// New returns a Counter. The first call loads the vocabulary, which takes tens of megabytes.
func New() Counter { return Counter{codec.NewO200kBase()} }

// Count returns how many tokens a text has.
func (c Counter) Count(text string) (int, error) { return c.codec.Count(text) }
