package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
)

// embedder computes the vectors that the handler returns.
type embedder interface {
	embed(ctx context.Context, texts []string) ([][]float32, error)
}

const (
	maxBody  = 32 << 20 // bytes
	maxTexts = 2048
)

type request struct {
	Input          texts  `json:"input"`
	EncodingFormat string `json:"encoding_format"`
}

// texts is one text or several.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*t = make(texts, 1)
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

type answer struct {
	Object string   `json:"object"`
	Data   []vector `json:"data"`
}

type vector struct {
	Object    string    `json:"object"`
	Index     int       `json:"index"`
	Embedding []float32 `json:"embedding"`
}

func handler(e embedder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
			refuse(w, http.StatusBadRequest, "the request is too large, or is not JSON of the required form")
			return
		}
		switch {
		case len(in.Input) == 0 || len(in.Input) > maxTexts:
			refuse(w, http.StatusBadRequest, "input must be 1 to 2048 texts")
			return
		case in.EncodingFormat != "" && in.EncodingFormat != "float":
			refuse(w, http.StatusBadRequest, "encoding_format must be float")
			return
		}
		vectors, err := e.embed(r.Context(), in.Input)
		if err != nil {
			log.Printf("embed %d texts: %v", len(in.Input), err)
			refuse(w, http.StatusInternalServerError, "the model failed; its log says why")
			return
		}
		out := answer{Object: "list", Data: make([]vector, len(vectors))}
		for i, v := range vectors {
			out.Data[i] = vector{"embedding", i, v}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
	return mux
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": why}})
}
