// Package semantictest serves embeddings, judgments and chat over HTTP for
// tests: real requests to a model that counts the character trigrams of words,
// and that fails in the ways in which endpoints do.
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

// Fault makes one answer other than it should be. It writes to w all there is
// to write and returns true, or returns false for the usual answer.
type Fault func(w http.ResponseWriter, r *http.Request, texts []string) bool

// Server is a model behind an endpoint.
type Server struct {
	URL string // with /v1
	Key string // that requests must have

	mu       sync.Mutex
	dims     int
	embed    func(text string) []float32
	fault    Fault
	requests int
	texts    []string
	reply    string
	hold     chan struct{}
}

// New starts a server, which ends with the test. dims is the length of its
// vectors.
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

// Break has requests fail so; nil heals.
func (s *Server) Break(f Fault) { s.set(func() { s.fault = f }) }

// Reply is what chat answers.
func (s *Server) Reply(text string) { s.set(func() { s.reply = text }) }

// Resize changes the length of the vectors, as another model behind the same
// name would.
func (s *Server) Resize(dims int) { s.set(func() { s.dims = dims }) }

// Serve has vectors made by f in place of trigrams.
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

// Requests is how many requests came so far, and Texts how many texts were
// embedded.
func (s *Server) Requests() int { s.mu.Lock(); defer s.mu.Unlock(); return s.requests }

// Texts are the texts that were embedded so far, prefixes included.
func (s *Server) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.texts...)
}

// read decodes a request; ok is false if it was answered already.
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

// Answer writes embeddings as an endpoint does.
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
	for i := len(in.Documents) - 1; i >= 0; i-- { // in no order that helps
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

// Trigrams is a vector of the character trigrams of a text's words, by their
// hash: texts that share words, or much of them, are near to one another.
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
	v[0] += 0.01 // so that no text has a vector of zeros
	return v
}
