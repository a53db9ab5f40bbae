package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/editdistance"
)

// meant suggests commands for an unknown word. If one or two commands of the group have a
// subcommand with exactly this name, meant suggests those subcommands. Otherwise it suggests the
// command of the group whose name is nearest, if there is one.
func meant(group *cobra.Command, word string) string {
	var names, elsewhere []string
	for _, c := range group.Commands() {
		names = append(names, c.Name())
		if slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word }) {
			elsewhere = append(elsewhere, c.Name()+" "+word)
		}
	}
	const most = 2
	if n := len(elsewhere); n == 0 || n > most {
		near := editdistance.Nearest(word, names)
		if near == "" {
			return ""
		}
		elsewhere = []string{near}
	}
	return "; did you mean: " + group.CommandPath() + " " + strings.Join(elsewhere, " or "+group.CommandPath()+" ")
}

// meantFlag suggests the flag whose name is nearest to the unknown name in err.
func meantFlag(fs *pflag.FlagSet, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name := editdistance.Nearest(unknown.GetSpecifiedName(), names); name != "" {
		return "; did you mean --" + name
	}
	return ""
}
