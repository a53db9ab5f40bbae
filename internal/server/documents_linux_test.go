package server

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// converting returns a core that can convert documents, and its settings.
func converting(t *testing.T) (*Core, *config.Config) {
	t.Helper()
	testenv.NeedProgram(t, "pandoc")
	testenv.NeedProgram(t, "pdftotext")
	cfg := withSandboxes(t)
	c, err := OpenCore(t.Context(), cfg, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, cfg
}

// pandocOf returns a document that pandoc makes of Markdown.
func pandocOf(t *testing.T, format, markdown string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out")
	cmd := exec.CommandContext(t.Context(), "pandoc", "--from", "markdown", "--to", format, "--standalone", "--output", file)
	cmd.Stdin = strings.NewReader(markdown)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pdfOf returns a PDF of one page with a content stream, and further objects from number 5.
func pdfOf(stream string, more ...string) []byte {
	objects := append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> /XObject << /X 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream),
	}, more...)
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer\n<< /Root 1 0 R >>\n%%EOF\n")
	return b.Bytes()
}

// Documents become pages of a source, which its readers see.
func TestDocumentsBecomePages(t *testing.T) {
	c, _ := converting(t)
	ctx := t.Context()
	if _, _, err := c.Service.FirstUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	const text = "# Care\n\nUse **vinegar**.\n\n| Cups | Minutes |\n|------|---------|\n| 1 | 2 |\n"
	for name, d := range map[string]struct {
		content []byte
		want    string
	}{
		"care.docx":  {pandocOf(t, "docx", text), "# Care\n\nUse **vinegar**.\n"},
		"care.epub":  {pandocOf(t, "epub", text), "Use **vinegar**.\n"},
		"care.ipynb": {pandocOf(t, "ipynb", text), "# Care\n\nUse **vinegar**.\n"},
		"care.pdf":   {pdfOf("BT /F 12 Tf 72 700 Td (Use vinegar.) Tj ET"), "## Page 1\n\nUse vinegar.\n"},
	} {
		x, err := c.Service.UploadToSource(ctx, service.Operator(), service.UploadToSourceInput{
			ID: "manuals", Name: name, Stream: bytes.NewReader(d.content), Create: &service.SyncedSourceInput{Source: space.Source{Everybody: true}},
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		files, err := c.Git.Files(ctx, x.Space, x.Commit, space.Path(name+".md"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: %v, %v", name, files, err)
			continue
		}
		if got, err := c.Git.ReadBlob(ctx, x.Space, files[0].Blob); err != nil || !strings.Contains(string(got), d.want) {
			t.Errorf("%s: %q is missing in\n%s\n%v", name, d.want, got, err)
		}
	}
}

// A document that takes the machine's time, memory or disk is refused, and the next one is converted.
func TestAttackDocuments(t *testing.T) {
	c, cfg := converting(t)
	limits := limitsOf(cfg)
	d, err := newDocuments(c.runtime, cfg.DataDir, limits, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	d.limits.WallTime = 5 * time.Second
	refused := func(what, name string, content []byte, want ...upstream.Reason) {
		t.Helper()
		out, err := d.convert(t.Context(), name, content)
		r, ok := errors.AsType[*upstream.Refusal](err)
		if !ok {
			t.Errorf("%s: %d bytes, %v", what, len(out), err)
			return
		}
		for _, w := range want {
			if r.Reason == w {
				return
			}
		}
		t.Errorf("%s: %v, want %v", what, err, want)
	}

	// Each form draws the next one ten times.
	forms := []string{}
	for i := range 12 {
		draw := strings.Repeat("/X Do ", 10)
		forms = append(forms, fmt.Sprintf("<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >> /Length %d >>\nstream\n%s\nendstream", i+6, len(draw), draw))
	}
	forms = append(forms, "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 0 >>\nstream\n\nendstream")
	refused("a PDF that never ends", "a.pdf", pdfOf("/X Do", forms...), upstream.TooSlow)

	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	line := []byte(strings.Repeat("BT /F 12 Tf 72 700 Td (An endless text.) Tj ET\n", 1000))
	for range 1000 {
		if _, err := z.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := fmt.Sprintf("<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Filter /FlateDecode /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> /Length %d >>\nstream\n%s\nendstream", packed.Len(), packed.Bytes())
	refused("a PDF that unpacks to 47 MB of text", "b.pdf", pdfOf("/X Do", bomb), upstream.TooSlow, upstream.TooLarge)
	refused("an .rtf of 2,000,000 groups", "c.rtf", []byte(`{\rtf1 `+strings.Repeat("{", 2_000_000)), upstream.TooSlow, upstream.Unreadable)

	if out, err := d.convert(t.Context(), "good.pdf", pdfOf("BT /F 12 Tf 72 700 Td (Good.) Tj ET")); err != nil || !strings.Contains(string(out), "Good.") {
		t.Errorf("the next document: %q, %v", out, err)
	}
	if left, err := os.ReadDir(d.dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left over, %v", len(left), err)
	}
}

// A program that a document has taken over reaches neither the network nor the server's files.
func TestAttackAConversionIsAlone(t *testing.T) {
	c, cfg := converting(t)
	d, err := newDocuments(c.runtime, cfg.DataDir, limitsOf(cfg), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(cfg.DataDir, "secret")
	if err := os.WriteFile(secret, []byte("quixotic"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, shell string) string {
		t.Helper()
		out, code, err := d.run(ctx, upstream.Command{Shell: "{ " + shell + "; } >out 2>&1; true", Files: map[string][]byte{"document": []byte("text")}, Output: "out"})
		if err != nil || code != 0 {
			t.Errorf("%s: %d, %v", shell, code, err)
		}
		return string(out)
	}
	if got := run(t.Context(), "cat document; echo; id -u; ls"); got != fmt.Sprintf("text\n%d\ndocument\nout\n", protocol.CommandUID) {
		t.Errorf("it sees %q", got)
	}
	if got := run(t.Context(), "cat '"+secret+"'; ls '"+cfg.DataDir+"'; cat /etc/shadow; ls /library"); strings.Contains(got, "quixotic") || strings.Contains(got, "spaces") || strings.Contains(got, "root:") {
		t.Errorf("attack: it reads %q", got)
	}
	if got := run(t.Context(), "for i in 127.0.0.1/22 1.1.1.1/53; do (exec 3<>/dev/tcp/$i) && echo connected; done; cat /proc/net/dev | tail -n +3 | grep -v lo:"); strings.Contains(got, "connected") || strings.Contains(got, "eth") {
		t.Errorf("attack: it has a network: %q", got)
	}
}

// Without sandboxes a document says what is missing, and text is taken all the same.
func TestUploadsWithoutSandboxes(t *testing.T) {
	c := testCore(t)
	ctx := t.Context()
	if _, _, err := c.Service.FirstUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	upload := func(name, content string) (service.UploadedToSource, error) {
		return c.Service.UploadToSource(ctx, service.Operator(), service.UploadToSourceInput{ID: "manuals", Name: name, Stream: strings.NewReader(content), Create: &service.SyncedSourceInput{}})
	}
	if _, err := upload("a.pdf", "%PDF-1.4"); fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "satchel doctor") {
		t.Errorf("%v", err)
	}
	if x, err := upload("a.md", "# A"); err != nil || x.Source.Files != 1 {
		t.Errorf("%+v, %v", x, err)
	}
}
