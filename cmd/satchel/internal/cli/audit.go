package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/service"
)

func (c *call) auditCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "audit", Args: cobra.NoArgs, Short: "list the audit log: sign-ins, grants and actions of admins"}, func(fs *pflag.FlagSet) runner {
		r := service.ListAuditInput{}
		fs.IntVar(&r.Limit, "limit", 50, "the newest `N` entries, at most 1000")
		fs.StringVar(&r.User, "user", "", "only entries by or about the person `NAME`, who may have been removed")
		fs.StringVar(&r.Act, "act", "", "only actions that begin with `PREFIX`, such as grant or user.create")
		return func(ctx context.Context, _ []string) error {
			if r.Limit < 1 || r.Limit > 1000 {
				return usage("--limit must be from 1 to 1000")
			}
			return c.admin(ctx, func(s admin.Service) error {
				rows, err := admin.Do(ctx, s, (*service.Service).ListAudit, r)
				if err != nil {
					return err
				}
				return c.answer(orEmpty(rows), func() { table(c.Stdout, "WHEN\tWHO\tVIA\tACT\tABOUT\tDETAIL", rows, auditRow) })
			})
		}
	})
}

func auditRow(e service.AuditEntry) string {
	return strings.Join([]string{day(e.At), orDash(printable(e.User)), e.Via, e.Action, orDash(printable(e.About)), auditDetail(e)}, "\t")
}

// auditDetail formats the details of an entry as KEY=VALUE. It leaves out empty values and those
// that another column shows.
func auditDetail(e service.AuditEntry) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(e.Detail)) {
		text := auditValue(key, e.Detail[key], e.Names)
		said := key == "name" && (strings.HasSuffix("/"+e.About, "/"+text) || e.About == text+" (removed)")
		if text == "" || said || key == "user" && e.About == text {
			continue
		}
		if strings.ContainsAny(text, " =\"") || printable(text) != text {
			text = strconv.Quote(text)
		}
		out = append(out, key+"="+text)
	}
	return strings.Join(out, " ")
}

func auditValue(key string, v any, names map[string]string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil && key == "expires" {
			return at.Local().Format("2006-01-02T15:04")
		}
		if name := names[v]; name != "" && key != "name" {
			return name
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var parts []string
		for _, p := range v {
			parts = append(parts, auditValue("", p, nil))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}
