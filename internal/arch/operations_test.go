package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/service"
)

// fronts are the trees that call operations. Those of clients call for whoever has a
// token, and those of commands for the operator.
var fronts = []struct {
	tree              string
	clients, commands bool
}{
	{tree: "web"}, {tree: "web/admin"}, {tree: "web/api", clients: true}, {tree: "tools", clients: true}, {tree: "mcp", clients: true},
	{tree: "cmd/satchel", commands: true}, {tree: "internal/admin", commands: true}, {tree: "internal/server"},
}

// Each front calls only operations that its callers can have the right to, and no
// operation is without a front.
func TestFrontsCallOperationsAsTheirRightsSay(t *testing.T) {
	operations, used := map[string]service.Operation{}, map[string]bool{}
	for _, o := range service.Operations() {
		operations[o.Name] = o
	}
	for _, f := range fronts {
		calls := operationsIn(t, f.tree)
		if len(calls) == 0 && f.tree != "mcp" {
			t.Errorf("%s calls no operation: the test would prove nothing", f.tree)
		}
		for name, file := range calls {
			o, ok := operations[name]
			if !ok {
				continue // a method that is no operation
			}
			used[name] = true
			switch {
			case f.clients && o.Right.Scope == "":
				t.Errorf("%s: no client may call %s", file, name)
			case f.commands && !o.HasJSON() && !slices.Contains([]string{"ImportSpace", "ImportMemory", "UploadToSource"}, name):
				t.Errorf("%s: a running server cannot be asked for %s", file, name)
			case f.tree == "web" && o.Right.Admin:
				t.Errorf("%s: %s is for admins, whose pages are in web/admin", file, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		if !used[name] {
			t.Errorf("no front calls %s", name)
		}
	}
}

// operationsIn returns the methods of the service that the packages of a tree call or
// name, with one of the files. Trees with a row of their own are left out.
func operationsIn(t *testing.T, tree string) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..", filepath.FromSlash(tree))
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(filepath.Join("..", ".."), path); err == nil && d.IsDir() && rel != tree {
			for _, f := range fronts {
				if filepath.ToSlash(rel) == f.tree {
					return fs.SkipDir
				}
			}
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && isService(sel.X) {
				found[sel.Sel.Name] = path
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isService reports whether an expression is the service, by its name, or its type.
func isService(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "Service"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Service" || e.Sel.Name == "service"
	case *ast.ParenExpr:
		if star, ok := e.X.(*ast.StarExpr); ok {
			return isService(star.X)
		}
	}
	return false
}
