package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The ONNX format is protocol buffers (onnx.proto3); these write the few fields
// that a model of one table needs.

func field(n int, data []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3|2)), uint64(len(data))), data...)
}

func number(n int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3)), v)
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// value is a ValueInfoProto: a name, an element type and dimensions, which are
// names or numbers.
func value(name string, elem uint64, dims ...any) []byte {
	var shape []byte
	for _, d := range dims {
		switch d := d.(type) {
		case string:
			shape = append(shape, field(1, field(2, []byte(d)))...)
		case int:
			shape = append(shape, field(1, number(1, uint64(d)))...)
		}
	}
	return join(field(1, []byte(name)), field(2, field(1, join(number(1, elem), field(2, shape)))))
}

const (
	onnxFloat = 1
	onnxInt64 = 7
)

// tinyModel writes a model whose token i has the i-th row of a table as its
// vector: the mean of a text's rows is what it must give.
func tinyModel(t *testing.T, words []string, table [][]float32) string {
	t.Helper()
	var raw []byte
	for _, row := range table {
		for _, x := range row {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
	}
	dims := len(table[0])
	graph := join(
		field(1, join(field(1, []byte("table")), field(1, []byte("input_ids")), field(2, []byte("last_hidden_state")), field(3, []byte("lookup")), field(4, []byte("Gather")))),
		field(2, []byte("tiny")),
		field(5, join(number(1, uint64(len(table))), number(1, uint64(dims)), number(2, onnxFloat), field(8, []byte("table")), field(9, raw))),
		field(11, value("input_ids", onnxInt64, "batch", "sequence")),
		field(11, value("attention_mask", onnxInt64, "batch", "sequence")),
		field(12, value("last_hidden_state", onnxFloat, "batch", "sequence", dims)),
	)
	onnx := join(number(1, 8), field(7, graph), field(8, join(field(1, nil), number(2, 13))))
	vocab := map[string]int{}
	for i, w := range words {
		vocab[w] = i
	}
	tokenizer, err := json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil,
		"added_tokens":   []any{},
		"normalizer":     map[string]any{"type": "Lowercase"},
		"pre_tokenizer":  map[string]any{"type": "Whitespace"},
		"post_processor": nil, "decoder": nil,
		"model": map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"model.onnx": onnx, "tokenizer.json": tokenizer,
		"config.json": []byte(`{"model_type":"bert","max_position_embeddings":128,"pad_token_id":0,"hidden_size":4}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestServesAModel(t *testing.T) {
	dir := tinyModel(t, []string{"[PAD]", "[UNK]", "cat", "dog", "bread"}, [][]float32{{0, 0, 0, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}})
	m, err := load(dir, "", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	srv := httptest.NewServer(handler(m))
	defer srv.Close()
	res, err := http.Post(srv.URL+"/v1/embeddings", "application/json", strings.NewReader(`{"model":"x","input":["cat","dog dog cat","Bread","cat dog bread unheard"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out answer
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	for i, want := range [][]float64{{1, 0, 0, 0}, {1 / math.Sqrt(5), 2 / math.Sqrt(5), 0, 0}, {0, 0, 1, 0}, {.5, .5, .5, .5}} {
		for k, x := range want {
			if got := float64(out.Data[i].Embedding[k]); math.Abs(got-x) > 1e-4 {
				t.Errorf("vector %d is %v, want %v", i, out.Data[i].Embedding, want)
				break
			}
		}
	}
}

func TestRefusesWhatItCannotRead(t *testing.T) {
	srv := httptest.NewServer(handler(nil))
	defer srv.Close()
	for _, body := range []string{``, `{`, `{"input":[]}`, `{"input":5}`, `{"input":["a"],"encoding_format":"base64"}`} {
		res, err := http.Post(srv.URL+"/v1/embeddings", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: status %d", body, res.StatusCode)
		}
	}
	if _, err := load(t.TempDir(), "", 1); err == nil {
		t.Error("an empty directory is a model")
	}
}
