package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"satchel/cmd/satchel/internal/app"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/sandbox/rootfs"
)

func rootfsCommand() *command {
	return &command{name: "rootfs", short: "root file systems for sandboxes", sub: []*command{{
		name: "build", args: "DIR", positional: 1,
		short: "make a root file system, so that sandboxes need not use this machine's /usr",
		long: `
It makes a small Debian with bash, coreutils, git, ripgrep, jq, python3 and what
belongs to them, with mmdebstrap or debootstrap, which check every package
against Debian's keys. Run it as root, or with mmdebstrap and uidmap as an
ordinary user. DIR appears once everything is in it and a sandbox has run over
it. SOURCE_DATE_EPOCH is heeded. docs/rootfs.md says more.`,
		setup: func(fs *pflag.FlagSet) runner {
			var o rootfs.Options
			fs.StringVar(&o.Suite, "suite", rootfs.DefaultSuite, "the `NAME` of Debian's release")
			fs.StringVar(&o.Mirror, "mirror", "", "`URL` of a Debian mirror (default: the one that apt uses here)")
			fs.StringSliceVar(&o.Include, "include", nil, "more packages: their `NAMES`, separated by commas")
			fs.BoolVar(&o.Replace, "replace", false, "put it in the place of DIR, which is kept as DIR.old")
			return func(ctx context.Context, c *call, args []string) error {
				o.Dir = args[0]
				return buildRootfs(ctx, c, o)
			}
		},
	}}}
}

// builtRootfs is what `rootfs build --json` prints.
type builtRootfs struct {
	Dir      string           `json:"dir"`
	Suite    string           `json:"suite"`
	Mirror   string           `json:"mirror"`
	Tool     string           `json:"tool"`
	Security bool             `json:"security"`
	Unpacked int64            `json:"unpacked"`
	Size     int64            `json:"size"`
	Files    int              `json:"files"`
	Digest   string           `json:"digest"`
	Seconds  float64          `json:"seconds"`
	Kept     string           `json:"kept,omitempty"`
	Checked  bool             `json:"checked"`
	Found    []string         `json:"found,omitempty"`
	Packages []rootfs.Package `json:"packages"`
}

func buildRootfs(ctx context.Context, c *call, o rootfs.Options) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	o.Environ = c.Environ
	if o.Epoch, err = sourceDate(c.Environ); err != nil {
		return err
	}
	o.Progress = func(line string, detail bool) {
		if !detail || c.Watched {
			c.note("%s\n", line)
		}
	}
	checked := false
	o.Check = func(dir string) ([]string, error) {
		found, why, err := tryRootfs(ctx, cfg, dir)
		if checked = err == nil && why == ""; why != "" {
			c.note("No sandbox was run over it: %s\n", why)
		}
		return found, err
	}
	r, err := rootfs.Build(ctx, o)
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.Invalid {
		return usage("%s", f.Public)
	}
	if err != nil {
		return err
	}
	return c.answer(builtRootfs{
		Dir: r.Dir, Suite: r.Suite, Mirror: r.Mirror, Tool: r.Tool, Security: r.Security, Unpacked: r.Unpacked, Size: r.Size,
		Files: r.Files, Digest: r.Digest, Seconds: r.Took.Seconds(), Kept: r.Kept, Checked: checked, Found: r.Found, Packages: r.Packages,
	}, func() {
		for _, l := range r.Found {
			c.printf("  %s\n", l)
		}
		c.printf("\n%s holds Debian %s: %d packages in %d files, %.0f MB of the %.0f MB that were installed. It took %s.\n",
			r.Dir, r.Suite, len(r.Packages), r.Files, float64(r.Size)/1e6, float64(r.Unpacked)/1e6, r.Took.Round(time.Second))
		if !r.Security {
			c.printf("apt on this machine knows no security updates of %s, so none are in it.\n", r.Suite)
		}
		if r.Kept != "" {
			c.printf("What was there is in %s now; remove it once the server has been restarted.\n", r.Kept)
		}
		c.printf("\nTo use it, put this into satchel.yaml and restart the server:\n  sandbox:\n    rootfs: %s\n", strconv.Quote(r.Dir))
	})
}

// tryRootfs runs a sandbox over a root file system; why says that none can run
// on this machine at all, which is no fault of the root file system.
func tryRootfs(ctx context.Context, cfg *config.Config, dir string) (found []string, why string, err error) {
	run, err := os.MkdirTemp("", "satchel-rootfs-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(run)
	log := slog.New(slog.DiscardHandler)
	own := *cfg
	own.Sandbox.Rootfs = ""
	if why, err = withoutRootfs(ctx, &own, run+"/own", log); why != "" || err != nil {
		return nil, why, err
	}
	own.Sandbox.Rootfs = dir
	rt, err := app.NewRuntime(&own, run+"/new", log)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if err := rt.Check(ctx); err != nil {
		return nil, "", err
	}
	found, err = rootfs.Try(ctx, rt)
	return found, "", err
}

// withoutRootfs says why no sandbox runs here over the machine's own programs.
func withoutRootfs(ctx context.Context, cfg *config.Config, run string, log *slog.Logger) (why string, err error) {
	rt, err := app.NewRuntime(cfg, run, log)
	if err != nil {
		return "", err
	}
	if rt == nil {
		return "the configuration switches them off (sandbox.runtime: none).", nil
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if err := rt.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return fault.PublicOf(err), nil
	}
	return "", nil
}

// sourceDate reads SOURCE_DATE_EPOCH, seconds since 1970.
func sourceDate(environ []string) (time.Time, error) {
	for _, v := range environ {
		text, ok := strings.CutPrefix(v, "SOURCE_DATE_EPOCH=")
		if !ok || text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH must be seconds since 1970, not %q", text)
		}
		return time.Unix(n, 0).UTC(), nil
	}
	return time.Time{}, nil
}
