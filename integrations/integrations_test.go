package integrations_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"satchel/integrations"
	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite the committed files")

func clients(t *testing.T, mcp string) []integrations.Client {
	t.Helper()
	all, err := integrations.For(mcp)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func content(t *testing.T, mcp, slug, path string) string {
	t.Helper()
	for _, c := range clients(t, mcp) {
		for _, f := range c.Files {
			if c.Slug == slug && f.Path == path {
				return f.Content
			}
		}
	}
	t.Fatalf("%s has no file %s", slug, path)
	return ""
}

// The committed directories contain what For returns.
func TestCommittedFiles(t *testing.T) {
	want := map[string]string{}
	for _, c := range clients(t, integrations.ExampleURL) {
		if *update {
			if err := os.RemoveAll(c.Slug); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range c.Files {
			path := filepath.Join(c.Slug, filepath.FromSlash(f.Path))
			want[path] = f.Content
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(f.Content), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if path == "typescript" {
			return fs.SkipDir // the client of the REST API, which For does not write
		}
		if err != nil || d.IsDir() || filepath.Dir(path) == "." {
			return err
		}
		data, err := os.ReadFile(path)
		if text, ok := want[path]; err == nil && (!ok || text != string(data)) {
			t.Errorf("%s is out of date; run: go test ./integrations -update", path)
		}
		delete(want, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range want {
		t.Errorf("%s is missing; run: go test ./integrations -update", path)
	}
}

func TestFilesAreValid(t *testing.T) {
	const mcp = "https://satchel.example.com/mcp"
	line := regexp.MustCompile(`^(\[[a-z_.]+\]|[a-z_]+ = ("[^"\\]*"|'''))?$`)
	for _, c := range clients(t, mcp) {
		for _, f := range c.Files {
			name := c.Slug + "/" + f.Path
			switch filepath.Ext(f.Path) {
			case ".json":
				if !json.Valid([]byte(f.Content)) {
					t.Errorf("%s is not JSON", name)
				}
			case ".toml":
				head, literal, _ := strings.Cut(f.Content, "'''\n")
				if literal != "" && strings.Count(literal, "'''") != 1 {
					t.Errorf("%s has a text without its closing quotes", name)
				}
				for l := range strings.Lines(head) {
					if l = strings.TrimSuffix(l, "\n"); !line.MatchString(l) && l != "prompt = " {
						t.Errorf("%s: %q is not TOML", name, l)
					}
				}
			case ".md", ".mdc":
				fields, err := frontmatter.Parse([]byte(f.Content))
				if err != nil || strings.HasPrefix(f.Content, "---\n") && fields.String("description") == "" {
					t.Errorf("%s has front matter without a description: %v", name, err)
				}
			}
			if !strings.HasSuffix(f.Content, "\n") {
				t.Errorf("%s has no line ending at its end", name)
			}
			if strings.Contains(f.Content, integrations.ExampleURL) {
				t.Errorf("%s names the example server", name)
			}
		}
	}
}

// The files name the server where their clients look for it.
func TestFilesNameTheServer(t *testing.T) {
	const mcp = "https://satchel.example.com/mcp"
	for _, tt := range []struct {
		slug, path string
		keys       []string
	}{
		{"claude-code", ".claude-plugin/plugin.json", []string{"userConfig", "url", "default"}},
		{"cursor", ".cursor/mcp.json", []string{"mcpServers", "satchel", "url"}},
		{"vscode", ".vscode/mcp.json", []string{"servers", "satchel", "url"}},
		{"gemini-cli", "gemini-extension.json", []string{"mcpServers", "satchel", "httpUrl"}},
	} {
		var v any
		if err := json.Unmarshal([]byte(content(t, mcp, tt.slug, tt.path)), &v); err != nil {
			t.Fatal(err)
		}
		for _, k := range tt.keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		if v != mcp {
			t.Errorf("%s/%s has %v at %v", tt.slug, tt.path, v, tt.keys)
		}
	}
}

// Each client has a file that ends with the same rules.
func TestClientsShareTheirWords(t *testing.T) {
	rules := content(t, integrations.ExampleURL, "chatgpt", "instructions.md")
	// ChatGPT accepts 1,500 characters.
	if len(rules) > 1500 {
		t.Errorf("the rules have %d characters", len(rules))
	}
	for _, c := range clients(t, integrations.ExampleURL) {
		if !slices.ContainsFunc(c.Files, func(f integrations.File) bool { return strings.HasSuffix(f.Content, rules) }) {
			t.Errorf("%s lacks the rules", c.Slug)
		}
	}
}

// The hook reminds once in a long conversation, if nothing was saved.
func TestStopHook(t *testing.T) {
	sh := testenv.NeedProgram(t, "sh")
	const (
		prompt   = `{"type":"user","message":{"role":"user","content":"hello"}}` + "\n"
		result   = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result"}]}}` + "\n"
		listed   = `{"type":"attachment","addedNames":["mcp__plugin_satchel_satchel__remember"],"tools":[{"name":"mcp__plugin_satchel_satchel__remember"}]}` + "\n"
		searched = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"mcp__plugin_satchel_satchel__search"}]}}` + "\n"
		saved    = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"mcp__plugin_satchel_satchel__remember"}]}}` + "\n"
	)
	dir := t.TempDir()
	hook := filepath.Join(dir, "hooks with spaces", "stop.sh")
	reminder := content(t, integrations.ExampleURL, "claude-code", "hooks/stop.json")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(hook, content(t, integrations.ExampleURL, "claude-code", "hooks/stop.sh"))
	write(filepath.Join(filepath.Dir(hook), "stop.json"), reminder)
	long := strings.Repeat(prompt, 5) + listed + searched
	for _, tt := range []struct {
		name, conversation, input string
		reminds                   bool
	}{
		{"long", long, "", true},
		{"short", strings.Repeat(prompt, 4) + strings.Repeat(result, 9), "", false},
		{"saved", long + saved, "", false},
		{"written", long + strings.Replace(saved, "__remember", "__write", 1), "", false},
		{"run by another server", long + strings.Replace(saved, "satchel_satchel__remember", "other__bash", 1), "", true},
		{"reminded", long + reminder, "", false},
		{"answering the reminder", long, `"stop_hook_active":true,`, false},
	} {
		conversation := filepath.Join(dir, tt.name+".jsonl")
		write(conversation, tt.conversation)
		cmd := exec.Command(sh, hook)
		cmd.Stdin = strings.NewReader(`{"session_id":"1","transcript_path":"` + conversation + `",` + tt.input + `"hook_event_name":"Stop"}`)
		out, err := cmd.CombinedOutput()
		if want := map[bool]string{true: reminder}[tt.reminds]; err != nil || string(out) != want {
			t.Errorf("%s: %q, %v", tt.name, out, err)
		}
	}
	cmd := exec.Command(sh, hook)
	cmd.Stdin = strings.NewReader(`{}`)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("no conversation: %q, %v", out, err)
	}
}

func TestArchive(t *testing.T) {
	for _, c := range clients(t, integrations.ExampleURL) {
		var b bytes.Buffer
		if err := c.WriteArchive(&b); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(z)
		for _, f := range c.Files {
			h, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil || h.Name != c.Slug+"/"+f.Path || string(data) != f.Content {
				t.Errorf("%s instead of %s/%s, %v", h.Name, c.Slug, f.Path, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: %v after the last file", c.Slug, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, mcp := range []string{
		"", "satchel.example.com", "/mcp", "ftp://example.com/mcp", "https:///mcp", "https://ada:secret@example.com/mcp",
		"https://example.com/mcp?key=1", "https://example.com/mcp#x", `https://a"b/mcp`, "https://a<b/mcp",
	} {
		if _, err := integrations.For(mcp); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", mcp, err)
		}
	}
	// Attack: an address that closes the quotes of a shell or of JSON.
	for _, mcp := range []string{"https://example.com/'; id; '/mcp", `https://example.com/","x":"/mcp`, "https://example.com/'''/mcp", "https://example.com/$(id)`id`/mcp"} {
		for _, c := range clients(t, mcp) {
			for _, text := range []string{c.Command, c.Install("~/.satchel/x"), c.Settings} {
				if strings.Contains(text, "; id") || strings.Contains(text, `"x"`) || strings.Contains(text, "'''") || strings.Contains(text, "`") || strings.Count(text, "'")%2 != 0 {
					t.Errorf("%s: %s", c.Slug, text)
				}
			}
		}
	}
}
