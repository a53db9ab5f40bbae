package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/tools/index/semantic/semantictest"
)

func configOf(t *testing.T, yaml string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "satchel.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{Flags: pflag.NewFlagSet("t", pflag.ContinueOnError), Environ: []string{"SATCHEL_DATA_DIR=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestSearchesDoNotWaitWhereTheConfigurationSaysSo(t *testing.T) {
	if l := searchLimits(configOf(t, "search: {wait: 0s}\n")); l != (service.SearchLimits{Wait: -1}) {
		t.Errorf("got %+v", l)
	}
}

func TestMeaningIsOffByDefault(t *testing.T) {
	m, err := Semantic(configOf(t, "log: {level: info}\n"), t.TempDir(), slog.New(slog.DiscardHandler))
	if m != nil || err != nil {
		t.Errorf("%v, %v", m, err)
	}
	if _, ok, err := CheckEmbeddings(t.Context(), configOf(t, "log: {level: info}\n")); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestTheModelsOfTheConfiguration(t *testing.T) {
	s := semantictest.New(t, 12)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(s.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := configOf(t, "search:\n  models_wait: 1s\n  embeddings: {url: \""+s.URL+"\", model: m, key: file:"+key+"}\n"+
		"  rerank: {url: \""+s.URL+"\", key: "+s.Key+"}\n  expand: {url: \""+s.URL+"\", model: c, key: "+s.Key+"}\n")
	dir := t.TempDir()
	m, err := Semantic(cfg, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Wait != time.Second || m.RerankWait != time.Second || m.ExpandWait != time.Second || m.Vectors.Dir != dir || m.Vectors.QueryWait != 200*time.Millisecond {
		t.Errorf("got %+v, %+v", m, m.Vectors)
	}
	if _, err := m.Reranker.Rerank(t.Context(), "cat", []string{"cat", "dog"}); err != nil {
		t.Error(err)
	}
	s.Reply("feline")
	if words, err := m.Expander.Expand(t.Context(), "cat"); err != nil || len(words) != 1 {
		t.Errorf("%q, %v", words, err)
	}
	c, ok, err := CheckEmbeddings(t.Context(), cfg)
	if err != nil || !ok || c.Dimensions != 12 || c.Model != "m" {
		t.Errorf("%+v, %v, %v", c, ok, err)
	}
}

func TestModelsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "\n", "two": "a\nb\n", "long": strings.Repeat("k", 5000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, yaml := range map[string]string{
		"no such key file": "search: {embeddings: {url: \"http://h/v1\", model: m, key: \"file:" + dir + "/none\"}}\n",
		"an empty key":     "search: {rerank: {url: \"http://h/v1\", key: \"file:" + dir + "/empty\"}}\n",
		"two keys":         "search: {expand: {url: \"http://h/v1\", model: m, key: \"file:" + dir + "/two\"}}\n",
		"a long key":       "search: {embeddings: {url: \"http://h/v1\", model: m, key: \"file:" + dir + "/long\"}}\n",
		"no such model":    "search: {embeddings: {model: " + dir + "/none}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Semantic(configOf(t, yaml), dir, slog.New(slog.DiscardHandler))
			if fault.CodeOf(err) != fault.Invalid || m != nil || strings.Contains(fault.PublicOf(err), "kkk") {
				t.Errorf("%v, %v", m, err)
			}
		})
	}
}

// TestWhatWasPurgedLeavesTheVectors looks at what is there of an earlier
// configuration: what is another space's stays.
func TestWhatWasPurgedLeavesTheVectors(t *testing.T) {
	cfg := configOf(t, "log: {level: info}\n")
	x, err := openIndex(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := forgetVectors(t.Context(), cfg, x, "space"); err != nil {
		t.Errorf("where there are none: %v", err)
	}
	if err := os.MkdirAll(vectorsDir(cfg), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"space.abc.vec", "other.abc.vec"} {
		if err := os.WriteFile(filepath.Join(vectorsDir(cfg), name), []byte("vectors"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := forgetVectors(t.Context(), cfg, x, "space"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(vectorsDir(cfg), "space.abc.vec")); !os.IsNotExist(err) {
			t.Errorf("the vectors are still there: %v", err)
		}
		if _, err := os.Stat(filepath.Join(vectorsDir(cfg), "other.abc.vec")); err != nil {
			t.Errorf("those of another space: %v", err)
		}
	}
}
