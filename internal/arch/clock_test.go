package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pauses lists the functions of tests that may use the wall clock, with the
// reason; docs/testing.md has the rule. There are five of them at most.
var pauses = map[string]string{
	"gitstore/faults/schedule_test.go pause":           "leaves to chance how far processes get before the next fault",
	"gitstore/remotetest/fault.go next":                "is a slow server, whose speed is what git measures",
	"sandbox/gvisor/killed_linux_test.go afterAMoment": "leaves to chance how far a start gets",
	"sandbox/sandboxtest/fake_agent.go after":          "is an agent that keeps the limits of the pool",
	"sandbox/sandboxtest/make.go Leaving":              "is a caller that leaves, at whatever moment",
}

// onlyForTests lists packages of test support whose names do not say so.
var onlyForTests = []string{"gitstore/faults", "sandbox/attacks"}

// clocks are functions that wait or end something at a time of the wall clock.
var clocks = map[string][]string{
	"time":    {"Sleep", "After", "AfterFunc", "NewTimer", "Tick", "NewTicker"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	"net":     {"DialTimeout"},
}

func TestTestsStateNoTimeLimits(t *testing.T) {
	used := map[string]bool{}
	files := 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "node_modules" || d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
				return fs.SkipDir
			}
			return err
		}
		file, err := filepath.Rel("../..", name)
		dir := filepath.ToSlash(filepath.Dir(file))
		isTest := strings.HasSuffix(file, "_test.go") || isTestPackage(dir) || slices.Contains(onlyForTests, dir)
		if err != nil || !strings.HasSuffix(file, ".go") || !isTest || under(dir, "internal/testenv") {
			return err
		}
		files++
		found, err := limits(name, nil)
		for _, f := range found {
			where := filepath.ToSlash(file) + " " + f.function
			if _, ok := pauses[where]; ok {
				used[where] = true
				continue
			}
			t.Errorf("%s:%d: %s uses %s. Wait for an event with internal/testenv, or fake the clock with testing/synctest (see docs/testing.md).", file, f.line, f.function, f.what)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files: %v", files, err)
	}
	if len(pauses) > 5 {
		t.Errorf("%d functions use the wall clock", len(pauses))
	}
	for where := range pauses {
		if !used[where] {
			t.Errorf("%s uses no clock: take it out of the list", where)
		}
	}
}

func TestTimeLimitsAreFound(t *testing.T) {
	const head = "package p\nimport (\n\"context\"\n\"net\"\nclock \"time\"\n\"testing\"\n)\n"
	for _, body := range []string{
		`func f() { clock.Sleep(1) }`,
		`var pause = clock.Sleep`,
		`func f() { select { case <-clock.After(1): } }`,
		`func f(ctx context.Context) { context.WithTimeout(ctx, 1) }`,
		`func f(c net.Conn) { c.SetReadDeadline(clock.Now().Add(1)) }`,
		`func f(c net.Conn, end clock.Time) { c.SetDeadline(end) }`,
		`func f() { net.DialTimeout("tcp", "x", 1) }`,
		`func f(at clock.Time) bool { return clock.Since(at) > 1 }`,
		`func f(at clock.Time) bool { took := clock.Since(at); return took > 1 }`,
		`func f(at clock.Time) bool { if took := clock.Now().Sub(at).Seconds(); took > 1 { return true }; return false }`,
		`func f(at clock.Time) { for clock.Now().Before(at) { } }`,
		`func f(at clock.Time) bool { return at.After(clock.Now()) }`,
	} {
		if found, err := limits("x_test.go", head+body); err != nil || len(found) == 0 {
			t.Errorf("%s: nothing is found, %v", body, err)
		}
	}
	for _, body := range []string{
		`func f(c net.Conn) { c.SetReadDeadline(clock.Time{}); c.SetDeadline(clock.Unix(1, 0)) }`,
		`func f(at clock.Time) { println(clock.Since(at)) }`,
		`func f(b *testing.B) { clock.Sleep(1) }`,
		`func f(at clock.Time) bool { return at.After(clock.Unix(1, 0)) }`,
		"import _ \"testing/synctest\"\nfunc f() { clock.Sleep(1) }",
	} {
		if found, err := limits("x_test.go", head+body); err != nil || len(found) > 0 {
			t.Errorf("%s: found %v, %v", body, found, err)
		}
	}
}

type limit struct {
	function, what string
	line           int
}

// limits finds the uses of the wall clock in a file. Benchmarks and files with a fake
// clock may use it.
func limits(name string, source any) ([]limit, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imports := map[string]string{} // by their names in the file
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if path == "testing/synctest" {
			return nil, nil
		}
		local := path
		if i.Name != nil {
			local = i.Name.Name
		}
		imports[local] = path
	}
	var found []limit
	for _, decl := range file.Decls {
		f := finder{imports: imports, took: map[string]bool{}}
		function := "the package"
		if fn, ok := decl.(*ast.FuncDecl); ok {
			function = fn.Name.Name
			if f.isBenchmark(fn) {
				continue
			}
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if what := f.limit(n); what != "" {
				found = append(found, limit{function, what, set.Position(n.Pos()).Line})
			}
			return true
		})
	}
	return found, nil
}

type finder struct {
	imports map[string]string
	took    map[string]bool // variables that hold how long something took
}

func (f finder) limit(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		for pkg, names := range clocks {
			if f.is(n, pkg, names...) {
				return pkg + "." + n.Sel.Name
			}
		}
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			if v, ok := l.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && f.measures(n.Rhs[i]) {
				f.took[v.Name] = true
			}
		}
	case *ast.BinaryExpr:
		if slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ}, n.Op) && (f.measures(n.X) || f.measures(n.Y)) {
			return "a comparison of the time that something took"
		}
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) != 1 {
			return ""
		}
		switch s.Sel.Name {
		case "SetDeadline", "SetReadDeadline", "SetWriteDeadline":
			_, literal := n.Args[0].(*ast.CompositeLit) // none
			call, ok := n.Args[0].(*ast.CallExpr)
			if past := ok && f.is(call.Fun, "time", "Unix"); !literal && !past {
				return s.Sel.Name
			}
		case "Before", "After":
			if f.isNow(s.X) || f.isNow(n.Args[0]) {
				return "a comparison with the time now"
			}
		}
	}
	return ""
}

// is reports whether an expression names one of a package's functions.
func (f finder) is(e ast.Expr, pkg string, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && f.imports[x.Name] == pkg && slices.Contains(names, s.Sel.Name)
}

func (f finder) isNow(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	return ok && f.is(c.Fun, "time", "Now")
}

// measures reports whether an expression is the time that something took.
func (f finder) measures(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			found = found || f.took[n.Name]
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && (f.is(s, "time", "Since") || s.Sel.Name == "Sub" && f.isNow(s.X))
		}
		return !found
	})
	return found
}

func (f finder) isBenchmark(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		if star, ok := p.Type.(*ast.StarExpr); ok && f.is(star.X, "testing", "B") {
			return true
		}
	}
	return false
}

func (l limit) String() string { return fmt.Sprintf("%s in %s, line %d", l.what, l.function, l.line) }
