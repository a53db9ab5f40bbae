// Package semantictest serves embeddings, scores and chat over real HTTP for tests. The model
// counts the character trigrams of words, and can fail in the ways in which endpoints fail.
package semantictest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Fault replaces one answer. It writes the whole answer to w and returns true, or it returns
// false for the usual answer.
type Fault func(w http.ResponseWriter, r *http.Request, texts []string) bool

// Server is a model behind an endpoint.
type Server struct {
	URL string // including /v1
	Key string // the key that requests must contain

	mu       sync.Mutex
	dims     int
	embed    func(text string) []float32
	fault    Fault
	requests int
	texts    []string
	reply    string
	hold     chan struct{}
}

// New starts a server that runs until the test ends. dims is the length of its vectors.
func New(t testing.TB, dims int) *Server {
	t.Helper()
	s := &Server{Key: "sk-test-0123456789abcdef", dims: dims}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	mux.HandleFunc("POST /v1/rerank", s.rerank)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	h := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Release()
		h.Close()
	})
	s.URL = h.URL + "/v1"
	return s
}

// Break makes requests fail with f; nil makes them succeed again.
func (s *Server) Break(f Fault) { s.set(func() { s.fault = f }) }

// Reply sets the answer of chat.
func (s *Server) Reply(text string) { s.set(func() { s.reply = text }) }

// Resize changes the length of the vectors, as if another model had the same name.
func (s *Server) Resize(dims int) { s.set(func() { s.dims = dims }) }

// Serve replaces trigrams by the vectors of f.
func (s *Server) Serve(f func(text string) []float32) { s.set(func() { s.embed = f }) }

// Hold makes requests wait until Release.
func (s *Server) Hold() { s.set(func() { s.hold = make(chan struct{}) }) }

// Release ends Hold.
func (s *Server) Release() {
	s.set(func() {
		if s.hold != nil {
			close(s.hold)
			s.hold = nil
		}
	})
}

func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Requests returns the number of requests.
func (s *Server) Requests() int { s.mu.Lock(); defer s.mu.Unlock(); return s.requests }

// Texts returns all texts that were embedded, including prefixes.
func (s *Server) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.texts...)
}

// read decodes a request. It returns false if the request was answered or cancelled.
func (s *Server) read(w http.ResponseWriter, r *http.Request, in any, texts func() []string) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, in)
	}
	s.mu.Lock()
	s.requests++
	fault, hold := s.fault, s.hold
	s.mu.Unlock()
	switch {
	case err != nil:
		http.Error(w, "bad request", http.StatusBadRequest)
		return false
	case r.Header.Get("Authorization") != "Bearer "+s.Key:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"incorrect key %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return false
	}
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return false
		}
	}
	return fault == nil || !fault(w, r, texts())
}

func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model      string   `json:"model"`
		Input      []string `json:"input"`
		Dimensions int      `json:"dimensions"`
	}
	if !s.read(w, r, &in, func() []string { return in.Input }) {
		return
	}
	s.mu.Lock()
	dims, embed := s.dims, s.embed
	if in.Dimensions > 0 {
		dims = in.Dimensions
	}
	s.texts = append(s.texts, in.Input...)
	s.mu.Unlock()
	if embed == nil {
		embed = func(text string) []float32 { return Trigrams(text, dims) }
	}
	data := make([]map[string]any, len(in.Input))
	for i, text := range in.Input {
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": embed(text)}
	}
	Answer(w, data)
}

// Answer writes embeddings in the format of an endpoint.
func Answer(w http.ResponseWriter, data []map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "usage": map[string]int{"prompt_tokens": 1}})
}

func (s *Server) rerank(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
		TopN      int      `json:"top_n"`
	}
	if !s.read(w, r, &in, func() []string { return in.Documents }) {
		return
	}
	var results []map[string]any
	for i := len(in.Documents) - 1; i >= 0; i-- { // not in the order of the documents
		score := 0.0
		for w := range strings.FieldsSeq(strings.ToLower(in.Query)) {
			score += float64(strings.Count(strings.ToLower(in.Documents[i]), w))
		}
		results = append(results, map[string]any{"index": i, "relevance_score": score})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct{ Role, Content string } `json:"messages"`
	}
	if !s.read(w, r, &in, func() []string { return nil }) {
		return
	}
	s.mu.Lock()
	reply := s.reply
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": reply}}}})
}

// Trigrams returns a vector of the hashed character trigrams of a text's words. Texts that
// share words, or parts of words, have similar vectors.
func Trigrams(text string, dims int) []float32 {
	v := make([]float32, dims)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		word = " " + strings.Trim(word, ".,:;!?#*`\"'()") + " "
		for i := 0; i+3 <= len(word); i++ {
			h := fnv.New32a()
			_, _ = io.WriteString(h, word[i:i+3])
			n := h.Sum32()
			v[n%uint32(dims)] += float32(int(n>>31)*2 - 1)
		}
	}
	v[0] += 0.01 // so that no text has a zero vector
	return v
}
