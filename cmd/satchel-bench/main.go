//go:build linux

// Command satchel-bench measures the real satchel binary. In the same run, it measures the
// alternative that a user would choose. It prints one JSON object per figure:
//
//	{"name","value","unit","against","other","ratio"}
//
// value and other are in unit, such as ms, or MB of 10^6 bytes. They are medians, unless the name
// says otherwise. ratio is other divided by value: above 1 is faster than the alternative.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// First arguments that make the program do something other than measure.
const (
	echoCommand = "echo-server"  // serves the alternative to a read; see serveEcho
	docsCommand = "docs-queries" // generates queries for documentation: OUT NAME=TREE[:UNDER]...
	talkCommand = "talk-queries" // generates conversations and questions about them: OUT NAME=TREE[:UNDER]...
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == echoCommand {
		if err := serveEcho(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case len(os.Args) > 3 && os.Args[1] == docsCommand:
		err = docsQueries(os.Args[2], os.Args[3:])
	case len(os.Args) > 3 && os.Args[1] == talkCommand:
		err = talkQueries(os.Args[2], os.Args[3:])
	default:
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "satchel-bench: %s\n", err)
		os.Exit(1)
	}
}

// suites holds the suites by name.
var suites = map[string]func(context.Context, *bench) error{
	"core": core, "gitstore": gitstoreSuite, "sandbox": sandboxSuite, "pages": pagesSuite, "search": searchSuite, "sync": syncSuite,
}

func run(ctx context.Context) error {
	fs := flag.NewFlagSet("satchel-bench", flag.ContinueOnError)
	jsonOnly := fs.Bool("json-only", false, "print JSON lines and nothing else")
	quick := fs.Bool("quick", false, "fewer runs and a smaller corpus: a smoke test, not a measurement")
	binary := fs.String("binary", filepath.Join("bin", "satchel"), "the satchel `program` to measure")
	names, flags := splitArgs(os.Args[1:])
	if err := fs.Parse(flags); err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{"core"}
	}
	exe, err := filepath.Abs(*binary)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "satchel-bench-")
	if err != nil {
		return err
	}
	b := &bench{binary: exe, self: self, dir: dir, quick: *quick, log: func(format string, args ...any) {
		if !*jsonOnly {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}
	}}
	defer b.clean()
	for _, name := range names {
		suite, ok := suites[name]
		if !ok {
			return fmt.Errorf("there is no suite %q", name)
		}
		if err := suite(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// splitArgs separates suites from flags. The justfile passes them in any order.
func splitArgs(args []string) (names, flags []string) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			flags = append(flags, a)
		} else {
			names = append(names, a)
		}
	}
	return names, flags
}

// bench holds the settings that all measurements share.
type bench struct {
	binary string // the path of satchel
	self   string // the path of this program
	dir    string // the scratch directory, removed at the end
	quick  bool
	log    func(format string, args ...any)
}

// clean removes the scratch directory.
func (b *bench) clean() {
	if err := os.RemoveAll(b.dir); err != nil {
		b.log("%v", err)
	}
}

// runs returns n, or fewer for a smoke test.
func (b *bench) runs(n int) int {
	if b.quick {
		return max(3, n/20)
	}
	return n
}

// size returns n, or fewer files for a smoke test.
func (b *bench) size(n int) int {
	if b.quick {
		return n / 10
	}
	return n
}

// figure is one measurement.
type figure struct {
	Name    string   `json:"name"`
	Value   float64  `json:"value"`
	Unit    string   `json:"unit"`
	Against string   `json:"against,omitempty"`
	Other   *float64 `json:"other,omitempty"`
	Ratio   *float64 `json:"ratio,omitempty"`
}

// alone prints a figure that has no alternative.
func (b *bench) alone(name string, value float64, unit string) {
	b.print(figure{Name: name, Value: round(value), Unit: unit})
}

// versus prints a figure beside its alternative.
func (b *bench) versus(name string, value float64, unit, against string, other float64) {
	o, r := round(other), round(other/value)
	b.print(figure{Name: name, Value: round(value), Unit: unit, Against: against, Other: &o, Ratio: &r})
}

func (b *bench) print(f figure) {
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		b.log("print %s: %v", f.Name, err)
	}
}

// round rounds to four decimal places, which is more exact than the measurements.
func round(v float64) float64 {
	return float64(int64(v*10000+0.5)) / 10000
}
