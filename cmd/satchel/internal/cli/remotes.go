package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (c *call) statusCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "status", Args: cobra.NoArgs, Short: "show the state of a space, its remote, and files that could not be saved"}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, _ []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				st, err := admin.Do(ctx, s, (*service.Service).GetSpaceStatus, service.GetSpaceStatusInput{Space: spaceNamed(*user)})
				if err != nil {
					return err
				}
				info, err := s.Info(ctx)
				if err != nil {
					return err
				}
				return c.answer(st, func() {
					printStatus(c.Stdout, st)
					if info.URL == "" && st.Remote != nil && st.State != space.RemotePushed {
						c.printf("%-10s the server is not running: nothing is pushed until it is, or by satchel space sync\n", "note")
					}
				})
			})
		}
	})
}

func (c *call) syncCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "sync", Args: cobra.NoArgs, Short: "synchronise a space with its remote now"}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, _ []string) error {
			return synced(ctx, c, (*service.Service).SyncRemote, service.SyncRemoteInput{Space: spaceNamed(*user)})
		}
	})
}

func (c *call) remoteCommand() *cobra.Command {
	return group("remote", "manage the repository with which a space is synchronised",
		c.command(&cobra.Command{Use: "set URL", Args: cobra.ExactArgs(1), Short: "set the git repository to which a space is pushed", Long: `
URL is https://HOST/PATH without a user or a password. If the space has not
changed since it was created, it takes over the repository's contents and history.
Otherwise the two are merged. From then on Satchel pushes every change in the background, and merges
changes that others push to the repository.

The token must allow reading and writing the repository. Satchel reads it from a
file, or with --token-file - from standard input. It stores the token encrypted; no
command line, log or sandbox ever contains it. Without --token-file, the token that
was last set for the same URL stays.

Remotes on private networks, by http, by ssh or in directories of this machine are
rejected without --trusted.

The command first scans the space for keys, because the first push would publish them.
If it finds any, it sets nothing. The scan does not find passwords, because they have
no recognizable format.

With --replace the contents of the repository replace those of the space. The server
keeps the former contents as a commit that "satchel space restore" can bring back.`}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", whoseSpace)
			branch := fs.String("branch", "", "the `BRANCH` (default: the repository's default)")
			username := fs.String("username", "", "the user `NAME` for the token, if the git server needs one")
			tokenFile := fs.String("token-file", "", "`FILE` with the token, or - for standard input")
			replace := fs.Bool("replace", false, "replace the contents of the space with those of the repository, instead of merging")
			withSecrets := fs.Bool("with-secrets", false, "allow everything in the space that looks like a secret")
			trusted := fs.Bool("trusted", false, "allow a private network, http, ssh or a local directory")
			return func(ctx context.Context, args []string) error {
				token, err := c.token(*tokenFile)
				if err != nil {
					return err
				}
				return synced(ctx, c, (*service.Service).SetRemote, service.SetRemoteInput{
					Space: spaceNamed(*user), URL: args[0], Branch: *branch, Username: *username, Token: token, Trusted: *trusted, Replace: *replace, WithSecrets: *withSecrets,
				})
			}
		}),
		c.command(&cobra.Command{Use: "remove", Args: cobra.NoArgs, Short: "stop pushing a space; the repository stays as it is"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", whoseSpace)
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					if _, err := admin.Do(ctx, s, (*service.Service).RemoveRemote, service.RemoveRemoteInput{Space: spaceNamed(*user)}); err != nil {
						return err
					}
					return c.answer(struct{}{}, func() { c.printf("The space no longer has a remote. All its files are still here.\n") })
				})
			}
		}),
	)
}

// maxToken bounds a token, in bytes.
const maxToken = 64 << 10

// token reads a remote's token from the file name, or from standard input if name is "-".
func (c *call) token(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	in, label := c.Stdin, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", fault.Wrap(err, fault.Invalid, "The token's file cannot be read: %s.", err)
		}
		defer f.Close()
		in, label = f, name
	}
	b, err := io.ReadAll(io.LimitReader(in, maxToken+1))
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "The token cannot be read from %s: %s.", label, err)
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || len(b) > maxToken || bytes.ContainsAny(b, "\r\n\x00") {
		return "", fault.New(fault.Invalid, "There is no token in %s: it must be one line.", label)
	}
	return string(b), nil
}

// synced performs an operation that ends with a sync. It returns an error if the sync failed or
// the operation found secrets.
func synced[In any](ctx context.Context, c *call, m service.Method[In, service.SpaceStatus], in In) error {
	st, err := longTask(ctx, c, m, in)
	if err != nil {
		return err
	}
	err = c.answer(st, func() {
		if len(st.Secrets) > 0 {
			printSecrets(c.Stdout, st.Secrets)
		} else {
			printStatus(c.Stdout, st)
		}
	})
	if err != nil {
		return err
	}
	if len(st.Secrets) > 0 {
		return fault.New(fault.Conflict, "The remote was not set: %s in the space would be pushed. Take them out with satchel space purge (for a secret in a file's name, rename the file and run satchel space purge --file PATH), allow them with satchel space allow FINGERPRINT, or all of them with --with-secrets.", places(len(st.Secrets)))
	}
	if st.State == space.RemoteFailed {
		return fault.New(fault.Unavailable, "The space is not in step with its remote; the server tries again while it runs.")
	}
	return nil
}

func places(n int) string {
	if n == 1 {
		return "1 place that looks like a secret"
	}
	return fmt.Sprintf("%d places that look like secrets", n)
}

func printSecrets(w io.Writer, found []service.FoundSecret) {
	table(w, "FILE\tCOMMIT\tWHAT IT LOOKS LIKE\tFINGERPRINT", found, func(s service.FoundSecret) string {
		place := printable(string(s.Path))
		if s.Path == "" {
			place = "(message or names)"
		}
		return fmt.Sprintf("%s:%d\t%s\t%s\t%s", place, s.Line, s.Commit.Short(), printable(s.Description), s.Fingerprint)
	})
}

// printStatus prints the state of a space and of its remote.
func printStatus(w io.Writer, st service.SpaceStatus) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("space", "%s of %s, at %s", printable(st.Space.Name), printable(st.Space.OwnerLabel()), st.Head.Short())
	if st.Remote == nil {
		row("remote", "none: the space is stored only on this server")
	} else {
		branch := ""
		if st.Remote.Branch != "" {
			branch = ", branch " + printable(st.Remote.Branch)
		}
		row("remote", "%s%s", printable(st.Remote.URL), branch)
		row("state", "%s", stateText(st))
	}
	if st.Detail != "" {
		row("problem", "%s", plain(st.Detail))
	}
	if st.Remedy != "" {
		row("what to do", "%s", plain(st.Remedy))
	}
	for _, l := range st.Locations {
		at := l.Path
		if l.Line > 0 {
			at += ":" + strconv.Itoa(l.Line)
		}
		row("", "%s at %s", printable(at), l.Commit.Short())
	}
	if !st.NextTry.IsZero() {
		row("next try", "%s", clock(st.NextTry))
	}
	for _, n := range st.Notes {
		row("note", "%s %s", n.At.Local().Format(time.DateOnly), plain(n.Text))
	}
	for _, h := range st.Pending {
		row("not saved", "%s: %s", printable(h.Path), plain(h.Why))
	}
}

// plain replaces the characters of s that could control a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, s)
}

func stateText(st service.SpaceStatus) string {
	unpushed := ""
	if st.Unpushed > 0 {
		unpushed = fmt.Sprintf("; %s not pushed yet", commits(st.Unpushed))
	}
	switch st.State {
	case space.RemotePushed:
		if !st.LastSync.IsZero() {
			return "in step, as of " + clock(st.LastSync)
		}
		return "in step"
	case space.RemoteQueued:
		return "waiting to be pushed" + unpushed
	case space.RemoteSyncing:
		return "a transfer is running" + unpushed
	case space.RemoteFailed:
		return "NOT in step" + unpushed
	}
	return string(st.State)
}

// clock formats a time for people, with its zone.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

func (c *call) purgeCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "purge [PATH[:LINE]]", Args: cobra.MaximumNArgs(1), Short: "remove secrets from commits that were never pushed", Long: `
Use this command if a remote rejects a push because of a secret, which also blocks
all later pushes. It removes the secret from the commits that the remote does not
have, and keeps everything else in them. Commits that the remote has stay as they
are. In a space without a remote no commit counts as pushed.

Without PATH it removes all secrets that the rules find or that the remote named.
With PATH it removes those in that file. With PATH:LINE it removes what is secret on
that line now (or at the commit --at) from every file. With PATH and --file it
removes the whole file. Without --file it also removes the secrets from commit
messages and authors' names. --dry-run lists the files that would change.

The command first stops the space's sandboxes. It deletes the old commits from disk.
Replace the secret at its provider anyway: others may have read it.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		file := fs.Bool("file", false, "remove the whole file")
		at := fs.String("at", "", "the `COMMIT` that has the LINE, as satchel space status prints it (default: the newest)")
		dry := fs.Bool("dry-run", false, "change nothing, and list the files")
		return func(ctx context.Context, args []string) error {
			r := service.PurgeSecretsInput{Space: spaceNamed(*user), Path: argument(args, 0), File: *file, At: *at, DryRun: *dry}
			if path, line, ok := cutLine(r.Path); ok {
				r.Path, r.Line = path, line
			}
			if *file && (r.Path == "" || r.Line != 0) {
				return usage("--file needs a PATH without a line")
			}
			if *at != "" && r.Line == 0 {
				return usage("--at needs PATH:LINE")
			}
			res, err := longTask(ctx, c, (*service.Service).PurgeSecrets, r)
			if err != nil {
				return err
			}
			return c.answer(res, func() {
				for _, x := range res.Unclear {
					c.printf("The remote named line %d of %s at %s, and nothing there looks like a secret. It was left alone; to take the line out: satchel space purge %s --at %s\n",
						x.Line, printable(x.Path), x.Commit.Short(), shellQuote(fmt.Sprintf("%s:%d", x.Path, x.Line)), x.Commit.Short())
				}
				if res.Commits == 0 {
					c.printf("Nothing was found in commits that were never pushed.\n")
					return
				}
				if r.DryRun {
					c.printf("Nothing was changed. These places of %s would be rewritten:\n", commits(res.Commits))
				} else {
					c.printf("Rewrote %s; the space is now at %s. Taken out of:\n", commits(res.Commits), res.Head.Short())
				}
				for _, f := range res.Files {
					c.printf("  %s\n", printable(string(f)))
				}
				if res.Words > 0 {
					c.printf("  the message or the names of %s\n", commits(res.Words))
				}
			})
		}
	})
}

// cutLine splits PATH:LINE. ok is false if s does not have this form.
func cutLine(s string) (path string, line int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	return s[:i], n, err == nil && n > 0
}

func (c *call) allowCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "allow [FINGERPRINT]", Args: cobra.MaximumNArgs(1), Short: "allow something that looks like a secret, or list what is allowed", Long: `
FINGERPRINT is in the answer that rejected the file. The command allows this one
secret at every path of the space. The next command in the sandbox saves the file.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		take := fs.Bool("revoke", false, "no longer allow the secret; files that were saved stay")
		return func(ctx context.Context, args []string) error {
			if len(args) == 0 && *take {
				return usage("--revoke needs a FINGERPRINT")
			}
			return c.admin(ctx, func(s admin.Service) error {
				if len(args) == 0 {
					list, err := admin.Do(ctx, s, (*service.Service).ListAllowedSecrets, service.ListAllowedSecretsInput{Space: spaceNamed(*user)})
					if err != nil {
						return err
					}
					return c.answer(orEmpty(list), func() { table(c.Stdout, "FINGERPRINT\tRULE\tPATH\tSINCE\tBY", list, allowanceRow) })
				}
				var err error
				if *take {
					_, err = admin.Do(ctx, s, (*service.Service).DisallowSecret, service.DisallowSecretInput{Space: spaceNamed(*user), Fingerprint: args[0]})
				} else {
					_, err = admin.Do(ctx, s, (*service.Service).AllowSecret, service.AllowSecretInput{Space: spaceNamed(*user), Fingerprint: args[0]})
				}
				if err != nil {
					return err
				}
				return c.answer(map[string]any{"fingerprint": args[0], "allowed": !*take}, func() {
					if *take {
						c.printf("It is refused again from now on.\n")
					} else {
						c.printf("Allowed in this space from now on. A file that waits for it is saved with the next command in the sandbox.\n")
					}
				})
			})
		}
	})
}

func allowanceRow(a space.SecretAllowance) string {
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", a.Fingerprint, a.Rule, printable(string(a.Path)), day(a.At), printable(a.By))
}

// unprintable reverses printable, for a name that is copied from the output of status.
func unprintable(s string) string {
	if strings.HasPrefix(s, `"`) {
		if name, err := strconv.Unquote(s); err == nil {
			return name
		}
	}
	return s
}

func (c *call) discardCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "discard PATH", Args: cobra.ExactArgs(1), Short: "discard a file that could not be saved", Long: `
"satchel space status" lists such files. Satchel keeps them, encrypted, until they
can be saved or are discarded.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, args []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				n, err := admin.Do(ctx, s, (*service.Service).DiscardPendingFile, service.DiscardPendingFileInput{Space: spaceNamed(*user), Path: unprintable(args[0])})
				if err != nil {
					return err
				}
				return c.answer(map[string]int{"discarded": n}, func() { c.printf("Threw away %s.\n", counted(n)) })
			})
		}
	})
}
