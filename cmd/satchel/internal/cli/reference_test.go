package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/config"
)

var update = flag.Bool("update", false, "rewrite docs/commands.md")

const referenceFile = "../../../../docs/commands.md"

// TestReference keeps docs/commands.md equal to `satchel COMMAND --help`.
func TestReference(t *testing.T) {
	want := reference()
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/commands.md is out of date; run: go test ./cmd/satchel/internal/cli -update")
	}
}

const referenceHead = `# Commands

<!-- Generated from cmd/satchel/internal/cli by "go test ./cmd/satchel/internal/cli -update"; do not edit. -->

` + "`satchel COMMAND --help`" + ` prints the same texts, and ` + "`satchel man DIR`" + ` writes them as manual pages.
` + "`satchel completion bash`" + ` (or ` + "`zsh`, `fish`, `powershell`" + `) prints a script that completes
commands and flags in that shell; ` + "`--help`" + ` describes how to load it. Every command
takes these flags:

%s
A command exits with 0 on success, with 2 if an argument or the value of a flag is wrong, and
with 1 otherwise. On failure, one line on standard error says what to do (one line for each mistake in
a configuration). With ` + "`--json`" + `, standard output has one JSON value and nothing else. After an
error it is empty, except for these commands: ` + "`space sync` and `space remote set`" + ` report the state of the
space, ` + "`doctor` and `auth check`" + ` report their findings, and ` + "`space repair`" + ` reports what it could
not repair.

` + "`serve` and `doctor`" + ` also accept each configuration key as a flag:
[configuration.md](configuration.md) lists them.

You can administer people, clients, keys, spaces and the search index whether or not a server runs on the
data directory. If one runs, commands call it over ` + "`run/admin.sock`" + `, which only the owner of the
data directory can reach. ` + "`user add`, `serve` and `stdio`" + ` create a missing data directory; other commands
report that it is missing. ` + "`eval`" + ` needs a data directory only for queries with the paths of a space.

## What --json prints

| command | JSON |
| --- | --- |
| ` + "`serve`" + ` | ` + "`{\"url\", \"data\", \"key_file\"}`" + ` once the server answers; ` + "`key_file`" + ` holds the first admin's key |
| ` + "`doctor`" + ` | ` + "`{\"ok\", \"sandbox\", \"version\", \"findings\": [{\"name\", \"ok\", \"optional\", \"detail\", \"remedy\", \"space\", \"damaged\": [{\"object\", \"paths\"}]}]}`" + `; with ` + "`--tokens`" + `: ` + "`{\"tokenizer\", \"tools\", \"instructions\", \"search\", \"searches\", \"read\", \"read_overhead\", \"pages\"}`" + `, in tokens; ` + "`read_overhead`" + ` is a share |
| ` + "`login-link`" + ` | ` + "`{\"url\", \"user\", \"expires\"}`" + ` |
| ` + "`user add`" + ` | ` + "`{\"id\", \"name\"}`" + ` |
| ` + "`user list`" + ` | ` + "`[{\"id\", \"name\", \"admin\", \"email\", \"state\", \"created\"}]`" + `; ` + "`email`" + ` if it is known; ` + "`state` is `active` or `suspended`" + ` |
| ` + "`user email`" + ` | ` + "`{\"name\", \"email\"}`" + ` |
| ` + "`user remove`" + ` | ` + "`{\"removed\", \"spaces\": [{\"id\", \"name\"}]}`" + `; ` + "`spaces`" + ` lists those that now have no owner |
| ` + "`user promote`" + ` | ` + "`{\"admin\"}`" + ` |
| ` + "`user demote`" + ` | ` + "`{\"member\"}`" + ` |
| ` + "`user signout`" + ` | ` + "`{\"sessions\"}`" + ` |
| ` + "`invite create`" + ` | ` + "`{\"id\", \"url\", \"expires\"}`" + ` |
| ` + "`invite list`" + ` | ` + "`[{\"id\", \"by\", \"space\", \"role\", \"admin\", \"note\", \"email\", \"expires\"}]`" + ` |
| ` + "`invite revoke`" + ` | ` + "`{\"revoked\"}`" + ` |
| ` + "`token create`" + ` | ` + "`{\"id\", \"token\"}`" + ` |
| ` + "`token list`" + ` | ` + "`[{\"id\", \"user\", \"space\", \"name\", \"scopes\", \"created\", \"expires\", \"last_used\", \"revoked\"}]`" + `; ` + "`expires` and `last_used`" + ` if there is such a time |
| ` + "`token revoke`" + ` | ` + "`{\"revoked\"}`" + ` |
| ` + "`client add`" + ` | ` + "`{\"id\", \"name\", \"kind\", \"redirects\", \"created\"}`" + ` |
| ` + "`client list`" + ` | a list of clients as ` + "`client add`" + ` prints them, with ` + "`last_used`" + ` if there is such a time |
| ` + "`client remove`" + ` | ` + "`{\"removed\"}`" + ` |
| ` + "`grant list`" + ` | ` + "`[{\"id\", \"kind\", \"user\", \"space\", \"name\", \"client\", \"scopes\", \"created\", \"last_used\"}]`" + ` |
| ` + "`grant revoke`" + ` | ` + "`{\"revoked\"}`" + ` |
| ` + "`auth check`" + ` | ` + "`{\"url\", \"ok\", \"findings\": [{\"name\", \"status\", \"what\", \"fix\", \"clients\"}], \"clients\": [{\"name\", \"verdict\", \"reason\"}]}`" + ` |
| ` + "`audit`" + ` | ` + "`[{\"at\", \"user\", \"via\", \"action\", \"subject\", \"about\", \"detail\": {…}, \"names\": {ID: NAME}}]`" + `; ` + "`about` is the name of `subject`, and `names` has the name of each ID in `detail`" + ` |
| ` + "`space list`" + ` | ` + "`[{\"id\", \"name\", \"owner\", \"owner_was\", \"repository\", \"head\"}]`" + `; ` + "`owner` is empty and `owner_was`" + ` is there if the owner was removed; ` + "`head`" + ` is empty if the space is too damaged to open |
| ` + "`space delete`" + ` | ` + "`{\"id\", \"name\", \"owner\", \"members\", \"sources\", \"remote\", \"unpushed\", \"deleted\"}`" + ` |
| ` + "`source add`, `source sync`" + ` | ` + "`{\"id\", \"title\", \"kind\", \"state\", \"problem\", \"files\", \"bytes\", \"commit\", \"synced\", …, \"run\": {…}, \"dry_run\": {…}}`" + `; ` + "`run`" + ` is a run as in ` + "`source status`" + `, and ` + "`dry_run`" + ` is there with ` + "`--dry-run`" + ` |
| ` + "`source upload`" + ` | ` + "`{\"id\", \"title\", …, \"uploaded\": [{\"name\", \"path\", \"reason\", \"problem\"}], \"run\": {…}}`" + `; ` + "`path`" + ` is the page that the file became, or ` + "`reason` and `problem`" + ` say why there is none |
| ` + "`source status`" + ` | ` + "`{\"source\", \"space\", \"kind\", \"settings\", \"manages\", \"upstream\", \"every\", \"paused\", \"state\", \"problem\", \"version\", \"checked\", \"next\", \"running\": {\"step\", \"done\", \"total\"}, \"runs\": [{\"id\", \"source\", \"state\", \"problem\", \"started\", \"ended\", \"version\", \"commit\", \"files\", \"bytes\", \"added\", \"changed\", \"deleted\", \"renamed\", \"skipped\": {REASON: COUNT}}]}`" + ` |
| ` + "`space create`, `space give`" + ` | ` + "`{\"id\", \"name\", \"owner\", \"repository\", \"head\"}`" + ` |
| ` + "`space members`" + ` | ` + "`[{\"name\", \"role\", \"added\"}]`" + ` |
| ` + "`space share`" + ` | ` + "`{\"member\"}`" + ` |
| ` + "`space unshare`" + ` | ` + "`{\"removed\"}`" + ` |
| ` + "`space import`" + ` | ` + "`{\"commit\", \"files\", \"history\", \"changed\", \"refused\": [{\"path\", \"why\"}], \"conflicts\": [{\"path\", \"kept\"}], \"replaced\": [\"path\"]}`" + `; the last three if there are any |
| ` + "`space log`" + ` | ` + "`[{\"commit\", \"author\", \"date\", \"message\", \"tool\", \"client\"}]`" + ` |
| ` + "`space show`" + ` | a commit as in ` + "`space log`" + ` with ` + "`\"files\": [{\"path\", \"status\"}]` and `\"patch\"`" + `, or ` + "`\"content\"`" + ` in base64 |
| ` + "`space restore`" + ` | ` + "`{\"commit\", \"changed\", \"files\": [{\"path\", \"status\"}], \"refused\": [{\"path\", \"why\"}]}`" + ` |
| ` + "`space status`, `space sync`, `space remote set`" + ` | ` + "`{\"space\": {…}, \"remote\": {\"url\", \"branch\", …}, \"state\", \"problem\", \"detail\", \"remedy\", \"unpushed\", \"head\", \"pushed\", \"last_check\", \"last_sync\", \"next_try\", \"attempts\", \"locations\", \"notes\", \"held\": [{\"path\", \"mode\", \"size\", \"why\", \"since\"}]}`" + `; ` + "`state` is `local`, `pushed`, `queued`, `syncing` or `failed`" + `; fields that do not apply are left out. If ` + "`space remote set`" + ` set nothing because of secrets, they are in ` + "`\"secrets\": [{\"path\", \"line\", \"commit\", \"rule\", \"description\", \"fingerprint\"}]`" + ` |
| ` + "`space remote remove`" + ` | ` + "`{}`" + ` |
| ` + "`space purge`" + ` | ` + "`{\"head\", \"commits\", \"files\"}`" + ` |
| ` + "`space repair`" + ` | ` + "`{\"restored\", \"left\": {\"packs\", \"bytes\", \"damaged\": [{\"object\", \"paths\"}], \"more\", \"said\"}}`" + `; ` + "`more`" + ` if the list is incomplete, ` + "`said`" + ` if only git names the defect |
| ` + "`space allow`" + ` | ` + "`{\"fingerprint\", \"allowed\"}`" + `, or the list of allowed secrets: ` + "`[{\"space\", \"fingerprint\", \"rule\", \"path\", \"allowed_by\", \"at\"}]`" + ` |
| ` + "`space discard`" + ` | ` + "`{\"discarded\"}`" + ` |
| ` + "`memory list`" + ` | ` + "`{\"facts\": [{\"path\", \"type\", \"key\", \"value\", \"cut\", \"source\", \"confidence\", \"client\", \"tool\", \"first_seen\", \"last_confirmed\", \"expires\", \"confirmed_by_person\", \"expired\", \"problem\", \"etag\"}], \"left\"}`" + `; ` + "`cut`" + ` if the value is only the beginning; ` + "`problem`" + ` if the file is not a valid fact; ` + "`left`" + ` counts the files that are not listed; fields that do not apply are left out |
| ` + "`memory set`" + ` | ` + "`{\"commit\", \"facts\": [{\"type\", \"key\", \"path\", \"value\", \"outcome\", \"before\", \"alike\"}], \"warnings\": [{\"path\", \"why\"}]}`" + `; ` + "`before` and `alike`" + ` are facts as in ` + "`memory list`" + `; ` + "`outcome` is `added`, `replaced`, `confirmed` or `unchanged`" + ` |
| ` + "`memory audit`" + ` | ` + "`{\"facts\", \"findings\": [{\"kind\", \"advice\", \"facts\", \"left\"}], \"left\"}`" + `; ` + "`kind`" + ` is ` + "`not_a_fact`" + `, ` + "`same_key`" + `, ` + "`alike`" + `, ` + "`expired`" + `, ` + "`unsure`" + ` or ` + "`old`" + ` |
| ` + "`memory forget`" + ` | ` + "`{\"commit\", \"removed\", \"missing\"}`" + `; ` + "`removed`" + ` lists facts as in ` + "`memory list`" + `; ` + "`missing`" + ` lists the names without a fact |
| ` + "`memory import`" + ` | ` + "`{\"format\", \"dry_run\", \"commit\", \"pages\": {\"added\", \"replaced\", \"unchanged\", \"first\": [{\"path\", \"name\"}]}, \"facts\": {…}, \"skipped\": [{\"path\", \"why\"}], \"left\", \"warnings\": [{\"path\", \"why\"}]}`" + `; ` + "`facts`" + ` has the fields of ` + "`pages`" + `; ` + "`first`" + ` lists 10 at most; ` + "`left`" + ` counts the skipped parts that are not listed; ` + "`commit`" + ` if something changed |
| ` + "`search`" + ` | the answer of the search tool: ` + "`{\"results\": [{\"id\", \"title\", \"path\", \"lines\", \"heading\", \"snippet\", \"score\", \"source\", …}], \"total\", \"truncated\", \"scope\", \"index_commit\", \"index_age\", \"notes\", \"suggestions\"}`" + `; the last two if there are any |
| ` + "`api search`, `api read`, `api shell`, `api sources`, `api sync`" + ` | fields of the answer of the REST API: [api.md](api.md) |
| ` + "`integration`" + ` | ` + "`[{\"client\", \"name\", \"about\", \"files\": [\"path\"]}]`" + `; with a client one such object with ` + "`\"directory\"`" + `, and ` + "`\"install\"`" + ` if a shell command installs the files |
| ` + "`reindex`" + ` | ` + "`{\"spaces\": [{\"space\", \"owner\", \"commit\", \"documents\", \"read\", \"absent\": [], \"seconds\"}]}`" + `; ` + "`absent`" + ` has the named paths that are not in the space |
| ` + "`eval`" + ` | ` + "`{\"ndcg@10\", \"map\", \"mrr@10\", \"recall@100\", \"p50_ms\", \"queries\"}`" + ` |
| ` + "`man`" + ` | ` + "`{\"written\"}`" + ` |
| ` + "`version`" + ` | ` + "`{\"version\", \"commit\", \"go\", \"gvisor\"}`" + ` |
`

func reference() string {
	root := (&call{}).root()
	var b strings.Builder
	fmt.Fprintf(&b, referenceHead, block(root.PersistentFlags().FlagUsages()))
	for _, cmd := range leaves(root) {
		fmt.Fprintf(&b, "\n## %s\n\n`%s`: %s.\n", cmd.CommandPath(), cmd.UseLine(), cmd.Short)
		if cmd.Long != "" {
			fmt.Fprintf(&b, "\n%s\n", cmd.Long)
		}
		fs := cmd.LocalFlags()
		hideServerFlags(fs)
		if fs.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s", block(fs.FlagUsages()))
		}
	}
	return b.String()
}

// leaves are the commands that do something.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

// hideServerFlags leaves out what configuration.md says.
func hideServerFlags(fs *pflag.FlagSet) {
	server := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(server)
	server.VisitAll(func(f *pflag.Flag) {
		if mine := fs.Lookup(f.Name); mine != nil {
			mine.Hidden = true
		}
	})
}

func block(text string) string { return "```text\n" + text + "```\n" }

// Every command says what it is for, without a full stop, as the lists want it.
func TestEveryCommandIsDescribed(t *testing.T) {
	root := (&call{}).root()
	for _, c := range append(append(root.Commands(), leaves(root)...), root) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, "\n") {
			t.Errorf("%s: %q", c.CommandPath(), c.Short)
		}
	}
}

// The value of a flag is called what it is, as URI or NAMES, not by a type of Go.
func TestFlagsNameTheirValues(t *testing.T) {
	for _, cmd := range leaves((&call{}).root()) {
		fs := cmd.LocalFlags()
		hideServerFlags(fs)
		fs.VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); !f.Hidden && f.Value.Type() != "bool" && name != strings.ToUpper(name) {
				t.Errorf("%s --%s: the value is called %q", cmd.CommandPath(), f.Name, name)
			}
		})
	}
}

func TestSourceName(t *testing.T) {
	for arg, want := range map[string]string{
		"https://me:secret@example.org/a/b.git?token=secret#secret": "https://example.org/a/b.git",
		"https://secret@example.org/a":                              "https://example.org/a",
		"https://me:se%ZZcret@example.org/a":                        "a git repository",
		"ssh://git@example.org:22/a/b":                              "ssh://example.org:22/a/b",
		"git@example.org:a/b.git":                                   "example.org:a/b.git",
		"example.org:a/b.git":                                       "example.org:a/b.git",
		"file:///srv/git/a.git":                                     "a git repository",
		"/no/such/place/docs":                                       "docs",
		"some/docs/":                                                "docs",
	} {
		if got := sourceName(arg); got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for s, want := range map[string]string{
		"": "''", "/a/b-c_d.e": "/a/b-c_d.e", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "é": "'é'",
	} {
		if got := shellQuote(s); got != want {
			t.Errorf("%q: %s", s, got)
		}
	}
}
