package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/gitstore"
	"satchel/internal/admin"
	"satchel/internal/bytesize"
	"satchel/internal/config"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/server"
	"satchel/internal/service"
	"satchel/internal/space"
)

// leastDisk is the free disk space, in bytes, under which doctor warns. A space may grow to a
// gigabyte, and its checkout and index grow with it.
const leastDisk = 2 << 30

func (c *call) doctorCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "doctor", Args: cobra.NoArgs, Short: "check this machine and the data, and say how to fix what is wrong", Long: `
It reads the database, the search index and every object of every space, also while
a server runs. It names each damaged object, the files that hold it, and how to
repair it. It exits with 1 if something that Satchel needs does not work or is
damaged. With --tokens it measures instead what the clients of a person pay: the
list of tools, the instructions, searches for headings of the person's pages, and
reads.`}, func(fs *pflag.FlagSet) runner {
		config.AddServerFlags(fs)
		tokens := fs.Bool("tokens", false, "measure the answers to clients, in tokens of a language model")
		user := fs.String("user", "", "with --tokens: the `NAME` of the person whose clients are measured (default: the first admin)")
		return func(ctx context.Context, args []string) error {
			if *tokens {
				return c.tokens(ctx, *user)
			}
			if *user != "" {
				return usage("--user is for --tokens")
			}
			return c.doctor(ctx, args)
		}
	})
}

// report is what `doctor --json` prints.
type report struct {
	// OK reports whether everything that Satchel needs works. Sandbox reports whether bash works.
	OK       bool      `json:"ok"`
	Sandbox  bool      `json:"sandbox"`
	Version  Version   `json:"version"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Optional bool   `json:"optional,omitempty"` // Satchel works even if OK is false
	Detail   string `json:"detail,omitempty"`
	Remedy   string `json:"remedy,omitempty"`
	// Space is the space with the defect, and Damaged lists its unreadable objects.
	Space   space.SpaceID      `json:"space,omitempty"`
	Damaged []gitstore.Damaged `json:"damaged,omitempty"`
}

func (c *call) doctor(ctx context.Context, _ []string) error {
	r := report{OK: true, Version: c.Version}
	cfg, err := c.load()
	if err != nil {
		r.add(finding{Name: "configuration", Detail: operatorText(err), Remedy: "Correct it; docs/configuration.md lists every key."})
		return c.printReport(r)
	}
	where := "the defaults; there is no configuration file"
	if cfg.File != "" {
		where = cfg.File
	}
	r.add(finding{Name: "configuration", OK: true, Detail: where})
	r.add(dataDirectory(cfg.DataDir))
	for _, f := range runningServer(ctx, cfg.DataDir) {
		r.add(f)
	}
	if server.Initialised(cfg.DataDir) {
		c.data(ctx, cfg, &r)
	} else if strings.HasPrefix(cfg.Database.URL, "postgres") {
		r.add(reachable(ctx, cfg))
	}
	r.add(git(ctx))
	if f, ok := embeddings(ctx, cfg); ok {
		r.add(f)
	}
	r.sandbox(ctx, cfg)
	return c.printReport(r)
}

func (r *report) add(f finding) {
	r.Findings = append(r.Findings, f)
	r.OK = r.OK && (f.OK || f.Optional)
}

// sandbox checks whether sandboxes can start.
func (r *report) sandbox(ctx context.Context, cfg *config.Config) {
	if cfg.Sandbox.Runtime == "none" {
		r.add(finding{Name: "sandbox", Optional: true, Detail: "switched off by the configuration (sandbox.runtime: none)"})
		return
	}
	f := finding{Name: "sandbox", OK: true, Detail: "a trial sandbox started"}
	if err := r.trySandbox(ctx, cfg); err != nil {
		f.OK, f.Detail, f.Remedy = false, fault.PublicOf(err), "Until this is fixed, everything except bash works."
	}
	r.Sandbox = f.OK
	r.add(f)
}

// trySandbox starts a sandbox, and adds a finding for each part that it needs.
func (r *report) trySandbox(ctx context.Context, cfg *config.Config) (err error) {
	// The trial has a temporary directory, because a server may be using the sandbox directory in
	// the data directory.
	dir, err := os.MkdirTemp("", "satchel-doctor-")
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "No temporary directory can be made in %s.", os.TempDir())
	}
	defer os.RemoveAll(dir)
	// The sandbox's programs go where the server puts them, because other directories may forbid
	// execution.
	programs := filepath.Join(dir, "programs")
	if f, err := os.CreateTemp(cfg.DataDir, "doctor-*"); err == nil {
		f.Close()
		os.Remove(f.Name())
		programs = server.ProgramsDir(cfg)
	}
	rt, err := server.NewRuntime(cfg, dir, programs, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	for _, f := range rt.Diagnose(ctx) {
		r.add(finding{Name: "sandbox: " + f.Name, OK: f.OK, Optional: true, Detail: f.Detail, Remedy: f.Remedy})
	}
	return rt.Check(ctx)
}

// probeBytes is how many bytes are written to test the disk: about the size of a small commit.
const probeBytes = 64 << 10

// dataDirectory checks the data directory or, if it does not exist, its nearest existing parent.
func dataDirectory(dir string) finding {
	f := finding{Name: "data directory"}
	there := dir
	for {
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a file", there)
		}
		if err == nil {
			break
		}
		parent := filepath.Dir(there)
		if !errors.Is(err, os.ErrNotExist) || parent == there {
			f.Detail, f.Remedy = err.Error(), "Name another one with --data."
			return f
		}
		there = parent
	}
	probe, err := os.CreateTemp(there, ".doctor-")
	if err != nil {
		f.Detail, f.Remedy = err.Error(), "Make it writable for the user who runs Satchel, or name another one with --data."
		return f
	}
	_, err = probe.Write(make([]byte, probeBytes))
	if err == nil {
		err = probe.Sync()
	}
	err = errors.Join(err, probe.Close())
	os.Remove(probe.Name())
	if err != nil {
		f.Detail, f.Remedy = fmt.Sprintf("%s cannot be written to: %v", dir, err), "Make room, or look at the disk: nothing can be saved."
		return f
	}
	free, err := freeBytes(there)
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	f.OK = true
	f.Detail = fmt.Sprintf("%s, %s free", dir, bytesize.Text(int64(min(free, 1<<62))))
	if there != dir {
		f.Detail += "; the first start makes it"
	}
	if free < leastDisk {
		f.OK, f.Optional = false, true
		f.Remedy = "Make room: commits fail when the disk is full."
	}
	return f
}

// runningServer reports whether a server runs, and whether its sources need attention.
func runningServer(ctx context.Context, dataDir string) []finding {
	f := finding{Name: "server", Optional: true, Detail: "none runs on the data directory"}
	remote, err := admin.Dial(ctx, server.SocketPath(dataDir))
	if err != nil {
		return []finding{f}
	}
	defer remote.Close()
	info, err := remote.Info(ctx)
	if err != nil {
		f.Detail, f.Remedy = operatorText(err), "If this does not go away, restart the server."
		return []finding{f}
	}
	f.OK, f.Detail = true, fmt.Sprintf("version %s at %s", info.Version, info.URL)
	out := []finding{f}
	if h, err := admin.Do(ctx, remote, (*service.Service).GetHealth, service.None{}); err == nil {
		for _, c := range h.Checks {
			if c.Name == "Sources" && (c.State == service.HealthBad || c.State == service.HealthNote) {
				out = append(out, finding{Name: "sources", Optional: true, Detail: printable(c.Detail), Remedy: c.Remedy})
			}
		}
	}
	return out
}

// reachable checks whether the configured database answers.
func reachable(ctx context.Context, cfg *config.Config) finding {
	f := finding{Name: "database", Remedy: "Correct database.url, or start the database."}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	db, err := database.Open(ctx, database.Options{URL: cfg.DatabaseURL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Detail = operatorText(err)
		return f
	}
	defer db.Close()
	if err := db.Ping(ctx); err != nil {
		f.Detail = operatorText(err)
		return f
	}
	return finding{Name: "database", OK: true, Detail: string(db.Kind())}
}

// embeddings checks whether the embedding model answers. It returns false if none is configured.
// Without a model, search only matches words.
func embeddings(ctx context.Context, cfg *config.Config) (finding, bool) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c, ok, err := server.CheckEmbeddings(ctx, cfg)
	f := finding{Name: "embeddings", Optional: true, OK: err == nil, Detail: fmt.Sprintf("%s: %d numbers in a vector, answered in %v", c.Model, c.Dimensions, c.Took.Round(time.Millisecond))}
	if err != nil {
		f.Detail = c.Model + ": " + operatorText(err)
		f.Remedy = "Correct search.embeddings, or start the endpoint; until then search only matches words."
	}
	return f, ok
}

// leastGit is the oldest version with which remotes work; see the package gitcmd.
const leastGit = "2.39"

// git looks for the git program and checks its version. Satchel imports, packs and merges
// spaces with git, and reaches remotes with it.
func git(ctx context.Context) finding {
	f := finding{Name: "git", Remedy: "Satchel imports, packs and merges spaces with it: apt-get install git"}
	path, err := exec.LookPath("git")
	if err != nil {
		f.Detail = "not installed"
		return f
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		f.Detail = fmt.Sprintf("%s does not run: %v", path, err)
		return f
	}
	f.Detail = strings.TrimSpace(string(out))
	if f.OK = gitAtLeast(f.Detail, leastGit); f.OK {
		f.Remedy = ""
	} else {
		f.Remedy = "Remotes need git " + leastGit + " or later."
	}
	return f
}

// gitAtLeast reports whether said, the output of `git --version`, names the version least or a
// later one. It compares the first two numbers.
func gitAtLeast(said, least string) bool {
	numbers := func(s string) (major, minor int) {
		_, _ = fmt.Sscanf(strings.TrimPrefix(s, "git version "), "%d.%d", &major, &minor)
		return major, minor
	}
	major, minor := numbers(said)
	wantMajor, wantMinor := numbers(least)
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}

// printReport prints the report. It returns an error if something that Satchel needs fails.
func (c *call) printReport(r report) error {
	if err := c.answer(r, func() { r.print(c.Stdout) }); err != nil {
		return err
	}
	if !r.OK {
		return fault.New(fault.Unavailable, "Not everything works on this machine; the report says what to do.")
	}
	return nil
}

func (r report) print(w io.Writer) {
	for _, f := range r.Findings {
		mark := "ok"
		switch {
		case !f.OK && f.Optional:
			mark = "--"
		case !f.OK:
			mark = "!!"
		}
		fmt.Fprintf(w, "%s  %-26s %s\n", mark, f.Name, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(w, "    %-26s %s\n", "", f.Remedy)
		}
	}
	switch {
	case r.OK && r.Sandbox:
		fmt.Fprintln(w, "\nEverything that Satchel needs works.")
	case r.OK:
		fmt.Fprintln(w, "\nEverything that Satchel needs works, except bash.")
	}
}
