package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

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
)

// data looks for damage in a data directory.
func (c *call) data(ctx context.Context, cfg *config.Config, r *report) {
	line := progressLine{w: c.Stderr, shown: c.Watched}
	defer line.clear()
	line.show("Checking the database")
	f := checkDatabase(ctx, cfg)
	r.add(f)
	checked, err := c.checkSpaces(ctx, cfg, f.OK, line.show)
	r.spaces(checked, err)
	line.show("Checking the search index")
	r.index(ctx, cfg)
}

// checkDatabase reads the whole of a SQLite database. For PostgreSQL, which checks its
// own data, it only checks that the server answers.
func checkDatabase(ctx context.Context, cfg *config.Config) finding {
	file, ok := database.SQLitePath(cfg.DatabaseURL())
	if !ok {
		return reachable(ctx, cfg)
	}
	f := finding{Name: "database", Remedy: database.Restore(file)}
	said, err := database.CheckFile(ctx, file, database.Thorough)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Detail = file + " is missing"
	case err != nil:
		f.Detail, f.Remedy = fmt.Sprintf("%s cannot be read: %v", file, err), "Make it readable for this user, or end the program that holds it."
	case len(said) > 0:
		f.Detail = fmt.Sprintf("%s is damaged: %s", file, printable(said[0]))
		if more := len(said) - 1; more > 0 {
			f.Detail += fmt.Sprintf(" (and %d more)", more)
		}
	default:
		return finding{Name: "database", OK: true, Detail: file + " is whole"}
	}
	return f
}

// checkSpaces lets a running server check the spaces, or checks them in this process. database
// says whether the database is whole. If the database is damaged and cannot be opened, checkSpaces
// opens the spaces without the database.
func (c *call) checkSpaces(ctx context.Context, cfg *config.Config, database bool, progress func(string)) (checked []service.SpaceCheck, err error) {
	ctx = service.WithProgress(ctx, progress)
	err = c.adminIn(ctx, cfg, func(s admin.Service) (err error) {
		checked, err = admin.Do(ctx, s, (*service.Service).CheckSpaces, service.CheckSpacesInput{})
		return err
	})
	if err == nil || database || ctx.Err() != nil {
		return checked, err
	}
	git, oerr := server.OpenSpaces(cfg, slog.New(slog.DiscardHandler))
	if oerr != nil {
		return nil, err // a server has the spaces open, and err is its error
	}
	checked, err = service.New(service.Options{Git: git}).CheckSpaces(ctx, service.Operator(), service.CheckSpacesInput{})
	return checked, errors.Join(err, git.Close())
}

// spaces adds a finding for each space that is damaged or could not be checked, and one for
// all whole spaces.
func (r *report) spaces(checked []service.SpaceCheck, err error) {
	if err != nil {
		r.add(finding{Name: "spaces", Detail: "the spaces could not be checked: " + operatorText(err), Remedy: "Follow the message, and run satchel doctor again."})
		return
	}
	whole, size := 0, int64(0)
	for _, s := range checked {
		if s.Error == "" && s.Whole() {
			whole, size = whole+1, size+s.Bytes
			continue
		}
		f := finding{Name: "space " + printable(s.Label()), Space: s.ID, Damaged: s.Damaged}
		switch {
		case s.Error != "":
			f.Detail, f.Remedy = "it could not be checked: "+printable(s.Error), fmt.Sprintf("If spaces/%s.git is missing or cannot be read, put that directory back from your backup.", s.ID)
		case len(s.Damaged) > 0:
			f.Detail, f.Remedy = damageText(s.Checkup), repairText(s)
		default:
			f.Detail, f.Remedy = "git finds a defect: "+printable(s.Said), repairText(s)
		}
		r.add(f)
	}
	if whole > 0 || len(checked) == 0 {
		r.add(finding{Name: "spaces", OK: true, Detail: fmt.Sprintf("%d of %d are whole, %s", whole, len(checked), bytesize.Text(size))})
	}
}

// shownDamaged is the maximum number of damaged objects that a text report names. With --json
// the report names more.
const shownDamaged = 10

func isDirectory(path string) bool { return strings.HasSuffix(path, "/") }

func damageText(c gitstore.Checkup) string {
	var names []string
	elsewhere := "in older versions alone"
	if slices.ContainsFunc(c.Damaged, func(d gitstore.Damaged) bool { return slices.ContainsFunc(d.Paths, isDirectory) }) {
		elsewhere = "in older versions, or in a damaged directory"
	}
	for _, d := range c.Damaged[:min(len(c.Damaged), shownDamaged)] {
		where := elsewhere
		if len(d.Paths) > 0 {
			var paths []string
			for _, p := range d.Paths {
				paths = append(paths, printable(p))
			}
			where = strings.Join(paths, ", ")
		}
		names = append(names, fmt.Sprintf("%s (%s)", d.Object[:12], where))
	}
	n := len(c.Damaged) + c.More
	text := fmt.Sprintf("%d objects cannot be read: ", n)
	if n == 1 {
		text = "1 object cannot be read: "
	}
	text += strings.Join(names, "; ")
	if more := n - len(names); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func repairText(s service.SpaceCheck) string {
	if s.Remote {
		return fmt.Sprintf("Run satchel space repair %s: it takes good copies from the space's remote.", s.ID)
	}
	return fmt.Sprintf("The space has no remote. Run satchel space repair %s --from BACKUP, where BACKUP is the directory spaces/%s.git of a backup, or any clone.", s.ID, s.ID)
}

// index adds a finding for each damaged file of the search index, or one if all are whole.
func (r *report) index(ctx context.Context, cfg *config.Config) {
	files, err := server.IndexFiles(cfg)
	if err != nil {
		r.add(finding{Name: "search index", Detail: err.Error()})
		return
	}
	bad := false
	for _, file := range slices.Sorted(maps.Keys(files)) {
		said, err := database.CheckFile(ctx, file, database.Quick)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(said) == 0 {
			continue // the file is whole, or was replaced meanwhile
		}
		f := finding{Name: "search index", Remedy: fmt.Sprintf("Run satchel reindex --space %s: this rebuilds it from the space.", files[file])}
		if f.Detail = fmt.Sprintf("%s cannot be read: %v", filepath.Base(file), err); err == nil {
			f.Detail = fmt.Sprintf("%s is damaged: %s", filepath.Base(file), printable(said[0]))
		}
		bad = true
		r.add(f)
	}
	if !bad {
		r.add(finding{Name: "search index", OK: true, Detail: "whole"})
	}
}

func (c *call) repairCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "repair SPACE", Args: cobra.ExactArgs(1), Short: "replace damaged objects of a space with good copies from its remote or a backup", Long: `
SPACE is the ID of a space, or the name of one of the person's spaces; satchel doctor
says which space is damaged. The command fetches the whole branch of the remote again,
and replaces each unreadable object with the remote's. With --from the copies come from
a repository on this machine instead, such as spaces/ID.git in a backup. Each copy is
verified against its hash. A server can be running. The command exits with 1 if
something is still damaged.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", "the owner's `NAME` (default: the first admin)")
		from := fs.String("from", "", "take the copies from the git repository in `DIR` instead of the remote")
		return func(ctx context.Context, args []string) error {
			in := service.RepairSpaceInput{Space: service.SpaceRef{User: *user, Name: args[0]}}
			if *from != "" {
				dir, err := filepath.Abs(*from) // the server has another working directory
				if err != nil {
					return err
				}
				in.From = dir
			}
			done, err := longTask(ctx, c, (*service.Service).RepairSpace, in)
			if err != nil {
				return err
			}
			if err := c.answer(done, func() { c.repaired(done) }); err != nil || done.Left.Whole() {
				return err
			}
			return fault.New(fault.Unavailable, "The space is still damaged. Try another copy with --from. If no copy has a file, write it again.")
		}
	})
}

func (c *call) repaired(done gitstore.Repaired) {
	switch {
	case done.Restored > 0:
		c.printf("Put %s back.\n", plural(int64(done.Restored), "object"))
	case done.Left.Whole():
		c.printf("Nothing is missing.\n")
	}
	switch {
	case len(done.Left.Damaged) > 0:
		c.printf("Still damaged: %s.\n", damageText(done.Left))
	case done.Left.Said != "":
		c.printf("git still finds a defect: %s\n", printable(done.Left.Said))
	default:
		c.printf("The space is whole.\n")
	}
}
