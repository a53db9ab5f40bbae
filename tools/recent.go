package tools

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

// Limits of the recent changes in instructions.
const (
	recentDays  = 7
	recentShown = 5
	recentRead  = 50 // commits that are read at once
	recentPages = 10 // the maximum number of such reads
)

// recent lists the latest changes of others in the caller's space, newest first. Others are
// people, and clients with another name. The list does not depend on earlier calls, so each
// conversation gets the same list.
func (s *Registry) recent(ctx context.Context, c Caller) (string, error) {
	own, _, _ := strings.Cut(c.Label(), "/")
	q := space.LogQuery{Since: s.o.Now().Add(-recentDays * 24 * time.Hour), Limit: recentRead}
	var b strings.Builder
	shown := 0
	for range recentPages {
		commits, err := s.o.Service.ListCommits(ctx, c.Actor, service.ListCommitsInput{Space: c.Space(), LogQuery: q})
		if err != nil {
			return "", err
		}
		for _, k := range commits {
			client, _, _ := strings.Cut(k.Client, "/")
			if own != "" && client == own || k.Parent == "" {
				continue
			}
			if shown == recentShown {
				b.WriteString("… and earlier changes\n")
				return b.String(), nil
			}
			shown++
			message, _, _ := strings.Cut(strings.TrimSpace(k.Message), "\n")
			by := cmp.Or(client, k.Author.Name, "somebody")
			if k.Client == space.ClientBrowser {
				by = cmp.Or(k.Author.Name, "a person") + " in the browser"
			}
			fmt.Fprintf(&b, "- %s, %s: %s\n", k.Time.UTC().Format("2 January"), oneLine(by, 60), cmp.Or(oneLine(message, 120), "no comment"))
		}
		if len(commits) < recentRead {
			break
		}
		q.After = commits[len(commits)-1].ID
	}
	return b.String(), nil
}
