package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "satchel"

// layers is the import table: a package (or a tree of packages, where the name
// ends in "/...") and which of our trees it may import besides itself. The most
// specific row counts.
var layers = []struct {
	pkg   string
	allow []string
}{
	{"cmd/...", []string{"cmd", "mcp", "auth", "sandbox", "gitstore", "tools", "web", "integrations", "internal"}},
	{"mcp/...", []string{"mcp", "auth", "tools", "internal"}},
	{"auth", []string{"internal"}},
	{"auth/oauth/...", []string{"auth/oauth", "=auth", "internal"}},
	{"auth/oidc/...", []string{"auth/oidc", "=auth", "internal"}},
	{"auth/github/...", []string{"auth/github", "=auth", "internal"}},
	{"auth/mail/...", []string{"auth/mail", "=auth", "internal"}},
	{"auth/passkey/...", []string{"auth/passkey", "=auth", "internal"}},
	{"auth/store/...", []string{"auth/store", "=auth", "internal"}},
	{"gitstore/...", []string{"gitstore", "internal"}},
	{"sandbox/...", []string{"sandbox", "internal"}},
	// Every sandbox pays for what its programs link: they take nothing of the server's.
	{"sandbox/protocol", []string{"=internal/fault", "=internal/space"}},
	{"sandbox/agent", []string{"=internal/space", "=sandbox/protocol"}},
	{"sandbox/gvisor/child/filters", nil},
	{"sandbox/gvisor/child", []string{"=sandbox/gvisor/child/filters", "=internal/space", "=internal/procmem", "sandbox/gvisor/link", "sandbox/gvisor/rundir", "=sandbox/host", "=sandbox/oci", "=sandbox/protocol"}},
	{"cmd/satchel-sandbox", []string{"=sandbox/gvisor/child"}},
	{"cmd/satchel-agent", []string{"=sandbox/agent"}},
	{"tools/...", []string{"tools", "internal"}},
	{"web/...", []string{"web", "auth", "tools", "integrations", "internal"}},
	// Other modules copy the client.
	{"web/client", nil},
	{"web/client/agent", []string{"=web/client"}},
	{"internal/service/...", []string{"internal", "auth", "gitstore", "sandbox", "tools/index"}},
	{"internal/admin/...", []string{"internal", "auth", "gitstore", "sandbox", "tools"}},
	{"internal/server/...", []string{"internal", "mcp", "auth", "sandbox", "gitstore", "tools", "web"}},
	{"internal/space", []string{"=internal/fault"}},
	{"internal/fault", nil},
	{"internal/...", []string{"internal"}},
	{"e2e/...", []string{"e2e", "auth", "gitstore", "internal"}},
	{"integrations/...", []string{"integrations", "internal"}},
}

// only lists dependencies that a few of our trees alone may import.
var only = map[string][]string{
	"github.com/blevesearch/snowballstem":      {"tools/index/language"},
	"github.com/mark3labs/mcp-go":              {"mcp", "cmd/satchel-bench"},
	"github.com/go-git/go-git":                 {"gitstore"},
	"gvisor.dev/gvisor":                        {"sandbox/gvisor/child"},
	"gorm.io":                                  {"internal/database", "internal/usage", "auth/store", "gitstore/remotes", "gitstore/secretscan", "gitstore/reviews", "gitstore/sources"},
	"github.com/coreos/go-oidc":                {"auth/oidc"},
	"github.com/golang-jwt/jwt":                {"auth/oidc"},
	"github.com/go-webauthn/webauthn":          {"auth/passkey"},
	"golang.org/x/oauth2":                      {"auth/oidc", "auth/github"},
	"github.com/yuin/goldmark":                 {"web/render"},
	"github.com/google/go-github":              {"auth/github"},
	"github.com/bradleyfalzon/ghinstallation":  {"auth/github"},
	"golang.org/x/crypto/acme":                 {"internal/acme"},
	"modernc.org/sqlite":                       {"internal/database", "tools/index"},
	"github.com/prometheus/client_golang":      {"internal/telemetry"},
	"github.com/opencontainers/runtime-spec":   {"sandbox"},
	"satchel/sandbox/agent":                    {"cmd/satchel-agent"}, // the server takes sandbox/protocol
	"github.com/tiktoken-go/tokenizer":         {"internal/tokenizer"},
	"codeberg.org/readeck/go-readability":      {"gitstore/sources/htmlmark"},
	"github.com/JohannesKaufmann":              {"gitstore/sources/htmlmark"},
	"github.com/mmcdole/gofeed":                {"gitstore/sources/upstream"},
	"github.com/temoto/robotstxt":              {"gitstore/sources/upstream"},
	"github.com/dbos-inc/dbos-transact-golang": {"gitstore/sources/syncs"},
}

// leaf packages that must stay light: they may import nothing but the standard
// library, golang.org/x/sys and ours.
var light = []string{"internal/space", "internal/fault", "sandbox/protocol", "sandbox/agent"}

type pkg struct {
	ImportPath, Dir           string
	Standard                  bool
	GoFiles, Imports          []string
	TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", module+"/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found %d packages: the test would prove nothing", len(pkgs))
	}
	return pkgs
}

func under(name, tree string) bool { return name == tree || strings.HasPrefix(name, tree+"/") }

func isTestPackage(name string) bool {
	last := name[strings.LastIndex(name, "/")+1:]
	return strings.HasSuffix(last, "test") || name == "internal/testenv"
}

// allowed reports whether the table lets one of our packages import another.
func allowed(from, to string) error {
	best, row := -1, -1
	for i, l := range layers {
		tree, isTree := strings.CutSuffix(l.pkg, "/...")
		if (isTree && under(from, tree) || from == tree) && len(tree) > best {
			best, row = len(tree), i
		}
	}
	if row < 0 {
		return fmt.Errorf("%s has no row in the import table", from)
	}
	for _, a := range layers[row].allow {
		if exact, ok := strings.CutPrefix(a, "="); ok && to == exact || !ok && under(to, a) {
			return nil
		}
	}
	return fmt.Errorf("%s may not import %s: its row allows %v", from, to, layers[row].allow)
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, p := range list(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			if err := allowed(from, to); err != nil {
				t.Error(err)
			}
			if isTestPackage(to) && !isTestPackage(from) {
				t.Errorf("%s imports the test package %s outside a test", from, to)
			}
		}
	}
}

func TestHeavyDependenciesHaveOneImporter(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			for dep, who := range only {
				if !under(imp, dep) {
					continue
				}
				seen[dep] = true
				if !isTestPackage(from) && !slices.ContainsFunc(who, func(w string) bool { return under(from, w) }) {
					t.Errorf("%s imports %s, which only %v may", from, imp, who)
				}
			}
		}
	}
	for dep := range only {
		if !seen[dep] {
			t.Errorf("nothing imports %s: take it out of the table", dep)
		}
	}
}

func TestLightPackagesStayLight(t *testing.T) {
	seen := 0
	for _, p := range list(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		if !slices.Contains(light, from) {
			continue
		}
		seen++
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if strings.Contains(first, ".") && !under(imp, "golang.org/x/sys") {
				t.Errorf("%s imports %s: it must stay light", from, imp)
			}
		}
	}
	if seen != len(light) {
		t.Errorf("found %d of the %d light packages", seen, len(light))
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	for _, p := range list(t) {
		var with []string
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", p.ImportPath, err)
		}
		source := 0
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			source++
			parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if parsed.Doc != nil && strings.TrimSpace(parsed.Doc.Text()) != "" {
				with = append(with, filepath.Base(f))
			}
		}
		if source > 0 && len(with) != 1 {
			t.Errorf("%s has %d package comments (%v), want one", p.ImportPath, len(with), with)
		}
	}
}
