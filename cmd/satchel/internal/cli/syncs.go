package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// settingFlags are the flags that describe the upstream of a source.
type settingFlags struct {
	kind, every *string
	set         *[]string
}

func addSettingFlags(fs *pflag.FlagSet) settingFlags {
	return settingFlags{
		kind:  fs.String("kind", "", "the `KIND` of upstream, such as git (default: what the URL looks like)"),
		every: fs.String("every", "", "the `INTERVAL` between updates, such as 6h; 0 for updates on request only (default 6h)"),
		set:   fs.StringArray("set", nil, "a setting of the kind as `NAME=VALUE`, such as branch=main; the value may be JSON. Can be repeated"),
	}
}

// setting returns the upstream that the flags and an address describe.
func (f settingFlags) setting(url string) (syncs.Setting, error) {
	s := syncs.Setting{Kind: *f.kind, URL: url}
	settings := map[string]any{}
	if s.Kind == upstream.Directory && url != "" {
		path, err := filepath.Abs(url)
		if err != nil {
			return s, err
		}
		settings["path"], s.URL = path, ""
	}
	for _, pair := range *f.set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return s, fault.New(fault.Invalid, "Write a setting as NAME=VALUE, not %q.", pair)
		}
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			v = value
		}
		settings[name] = v
	}
	var err error
	if len(settings) > 0 {
		s.Settings, err = json.Marshal(settings)
	}
	if err == nil && *f.every != "" {
		var d time.Duration
		if *f.every != "0" {
			if d, err = config.ParseDuration(*f.every); err != nil {
				return s, fault.New(fault.Invalid, "--every is a duration such as 30m, 6h or 7d.")
			}
		}
		seconds := int64(d / time.Second)
		s.Every = &seconds
	}
	return s, err
}

// ofMachine adds a hint to an error about a local address: which --kind to give.
func (c *call) ofMachine(err error, args []string) error {
	address := strings.Join(args, "")
	if fault.FieldOf(err) == "url" && !c.flags.Changed("kind") && (strings.HasPrefix(address, "/") || strings.HasPrefix(address, "file:")) {
		return fault.New(fault.CodeOf(err), "%s For a git repository on this machine add --kind git, and for a folder --kind directory.", fault.PublicOf(err))
	}
	return err
}

func (c *call) sourceAdd() *cobra.Command {
	return c.command(&cobra.Command{Use: "add URL", Args: cobra.MaximumNArgs(1), Short: "add a source that follows a repository or another upstream", Long: `
The server fetches the files, keeps their history, and updates them on a schedule. Others read
them under /library/docs/ID, and search them. Without --for, everybody on the server can read
the source. The operator may also add addresses in private networks and directories.`}, func(fs *pflag.FlagSet) runner {
		id := fs.String("id", "", "the `ID` of the source, which is unique on the server")
		text := space.SourceText{}
		fs.StringVar(&text.Title, "title", "", "the `NAME` that people see")
		fs.StringVar(&text.Description, "description", "", "a `SENTENCE` that says when an AI should look there")
		fs.StringVar(&text.Aliases, "aliases", "", aliasesUsage)
		readers := fs.StringSlice("for", nil, "the `NAMES` of its readers, separated by commas (default: everybody)")
		preview := fs.Bool("preview", false, "only show what the source would contain")
		flags := addSettingFlags(fs)
		return func(ctx context.Context, args []string) error {
			setting, err := flags.setting(strings.Join(args, ""))
			if err != nil {
				return err
			}
			in := service.SyncedSourceInput{
				Source: space.Source{ID: *id, SourceText: text, Everybody: !c.flags.Changed("for")}, Readers: *readers, Setting: setting,
			}
			if *preview {
				p, err := longTask(ctx, c, (*service.Service).PreviewSyncedSource, in)
				if err != nil {
					return c.ofMachine(err, args)
				}
				return c.answer(p, func() { c.printPreview(p) })
			}
			line := progressLine{w: c.Stderr, shown: c.Watched}
			defer line.clear()
			return c.admin(ctx, func(s admin.Service) error {
				added, err := admin.Do(ctx, s, (*service.Service).AddSyncedSource, in)
				if err != nil {
					return c.ofMachine(err, args)
				}
				x, err := admin.Do(service.WithProgress(ctx, line.show), s, (*service.Service).SyncSource, service.SyncSourceInput{ID: added.ID})
				line.clear()
				if err != nil {
					return err
				}
				return c.answer(x, func() { c.printSync(x) })
			})
		}
	})
}

func (c *call) sourceChange() *cobra.Command {
	return c.command(&cobra.Command{Use: "change ID", Args: cobra.ExactArgs(1), Short: "change a source that follows an upstream"}, func(fs *pflag.FlagSet) runner {
		title := fs.String("title", "", "the `NAME` that people see")
		description := fs.String("description", "", "a `SENTENCE` that says when an AI should look there")
		aliases := fs.String("aliases", "", aliasesUsage)
		readers := fs.StringSlice("for", nil, "the `NAMES` of its readers, separated by commas")
		everybody := fs.Bool("for-everybody", false, "let everybody on the server read the source")
		every := fs.String("every", "", "the `INTERVAL` between updates, such as 6h; 0 for updates on request only")
		set := fs.StringArray("set", nil, "a setting of the kind as `NAME=VALUE`; the settings replace all others. Can be repeated")
		return func(ctx context.Context, args []string) error {
			none := ""
			setting, err := settingFlags{kind: &none, every: every, set: set}.setting("")
			if err != nil {
				return err
			}
			in := service.ChangeSyncedSourceInput{ID: args[0], Setting: setting}
			for name, set := range map[string]func(){
				"title": func() { in.Title = title }, "description": func() { in.Description = description }, "aliases": func() { in.Aliases = aliases },
				"for": func() { in.Readers = readers }, "for-everybody": func() { in.Everybody = everybody },
			} {
				if c.flags.Changed(name) {
					set()
				}
			}
			return c.admin(ctx, func(s admin.Service) error {
				x, err := admin.Do(ctx, s, (*service.Service).ChangeSyncedSource, in)
				if err != nil {
					return err
				}
				return c.answer(x, func() { c.printf("Changed %s.\n", x.ID) })
			})
		}
	})
}

func (c *call) sourceSync() *cobra.Command {
	return c.command(&cobra.Command{Use: "sync ID", Args: cobra.ExactArgs(1), Short: "update a source now"}, func(fs *pflag.FlagSet) runner {
		reset := fs.Bool("reset", false, "fetch every file again")
		dry := fs.Bool("dry-run", false, "only show what the update would change")
		confirm := fs.Bool("confirm", false, "let the update remove most of the files")
		return func(ctx context.Context, args []string) error {
			x, err := longTask(ctx, c, (*service.Service).SyncSource, service.SyncSourceInput{ID: args[0], Reset: *reset, DryRun: *dry, Confirm: *confirm})
			if err != nil {
				return err
			}
			return c.answer(x, func() { c.printSync(x) })
		}
	})
}

func (c *call) sourceCancel() *cobra.Command {
	return c.command(&cobra.Command{Use: "cancel ID", Args: cobra.ExactArgs(1), Short: "cancel the running update of a source"}, func(*pflag.FlagSet) runner {
		return func(ctx context.Context, args []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				if _, err := admin.Do(ctx, s, (*service.Service).CancelSync, service.CancelSyncInput{ID: args[0]}); err != nil {
					return err
				}
				return c.answer(struct{}{}, func() { c.printf("The update of %s was canceled.\n", args[0]) })
			})
		}
	})
}

// sourcePause returns the command that stops the schedule of a source or, if paused is false,
// resumes it.
func (c *call) sourcePause(paused bool) *cobra.Command {
	use, short, done := "resume ID", "update a paused source on its schedule again", "%s is updated on its schedule again. An update starts now.\n"
	if paused {
		use, short, done = "pause ID", "stop the schedule of a source, so that it is updated on request only", "%s is paused. To resume it: satchel source resume %[1]s\n"
	}
	return c.command(&cobra.Command{Use: use, Args: cobra.ExactArgs(1), Short: short}, func(*pflag.FlagSet) runner {
		return func(ctx context.Context, args []string) error {
			in := service.ChangeSyncedSourceInput{ID: args[0]}
			in.Paused = &paused
			return c.admin(ctx, func(s admin.Service) error {
				x, err := admin.Do(ctx, s, (*service.Service).ChangeSyncedSource, in)
				if err != nil {
					return err
				}
				return c.answer(x, func() { c.printf(done, x.ID) })
			})
		}
	})
}

func (c *call) sourceStatus() *cobra.Command {
	return c.command(&cobra.Command{Use: "status ID", Args: cobra.ExactArgs(1), Short: "show how a source follows its upstream, with its last updates"}, func(*pflag.FlagSet) runner {
		return func(ctx context.Context, args []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				x, err := admin.Do(ctx, s, (*service.Service).ListSyncRuns, service.ListSyncRunsInput{ID: args[0]})
				if err != nil {
					return err
				}
				return c.answer(x, func() {
					c.printf("%s is %s. Its space is %s.\n", x.Source, x.State, x.Space)
					switch x.Origin {
					case space.OriginFile:
						c.printf("Its settings come from the configuration file.\n")
					case space.OriginLeft:
						c.printf("Its entry is no longer in the configuration file, so it is updated on request only. To remove it: satchel source remove %s\n", x.Source)
					}
					if x.Paused {
						c.printf("It is paused. To resume it: satchel source resume %s\n", x.Source)
					}
					if x.Problem != "" {
						c.printf("%s\n", printable(x.Problem))
					}
					if x.Running != nil {
						c.printf("An update runs: %s, %d of %d files.\n", x.Running.Step, x.Running.Done, x.Running.Total)
					}
					table(c.Stdout, "STARTED\tSTATE\tFILES\tCHANGES\tPROBLEM", x.Runs, func(r space.SyncRun) string {
						return fmt.Sprintf("%s\t%s\t%d\t%s\t%s", r.Started.Format(time.RFC3339), r.State, r.Files, changesOf(r.SyncCounts), printable(r.Problem))
					})
				})
			})
		}
	})
}

func (c *call) sourceRemove() *cobra.Command {
	return c.command(&cobra.Command{Use: "remove ID", Args: cobra.ExactArgs(1), Short: "remove a source that follows an upstream, with its files and their history"}, func(*pflag.FlagSet) runner {
		return func(ctx context.Context, args []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				if _, err := admin.Do(ctx, s, (*service.Service).RemoveSyncedSource, service.RemoveSyncedSourceInput{ID: args[0]}); err != nil {
					return err
				}
				return c.answer(struct{}{}, func() { c.printf("Removed %s.\n", args[0]) })
			})
		}
	})
}

func (c *call) printSync(x service.SyncedSource) {
	switch {
	case x.DryRun != nil:
		c.printf("An update of %s would change: %s.\n", x.ID, changesOf(x.DryRun.SyncCounts))
	case x.Run == nil:
		c.printf("%s is %s.\n", x.ID, x.State)
	case x.Run.Problem != "":
		c.printf("The update of %s did not succeed (%s): %s\n", x.ID, x.Run.State, printable(x.Run.Problem))
		if x.Run.State == space.SyncStopped {
			c.printf("To confirm it: satchel source sync %s --confirm\n", x.ID)
		}
	case x.Run.State == space.SyncUnchanged:
		c.printf("%s is up to date.\n", x.ID)
	default:
		c.printf("Synced %s: %s; %s.\n", x.ID, counted(x.Run.Files), changesOf(x.Run.SyncCounts))
	}
}

func (c *call) printPreview(p space.SyncPreview) {
	c.printf("The source would be of the kind %s, with %s.\n", p.Kind, counted(p.Files))
	for _, t := range p.Titles {
		c.printf("  %s\n", printable(t))
	}
}

// changesOf describes what a sync changed.
func changesOf(n space.SyncCounts) string {
	text := fmt.Sprintf("%d added, %d changed, %d renamed, %d deleted", n.Added, n.Changed, n.Renamed, n.Deleted)
	for _, reason := range slices.Sorted(maps.Keys(n.Skipped)) {
		text += fmt.Sprintf(", %d skipped (%s)", n.Skipped[reason], reason)
	}
	return text
}
