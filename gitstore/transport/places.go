package transport

import (
	"strconv"
	"strings"

	"satchel/gitstore/commits"
	"satchel/internal/space"
)

const (
	maxPlaces = 100
	maxPath   = 200
	maxRule   = 120
)

var (
	// These expressions match the report of GitHub's push protection. It has a heading with the
	// kind of secret, and then for each place the commit and the path with the line.
	secretHeading = expression(`^—+ (.+?) —+$`)
	secretCommit  = expression(`^- commit: ([0-9a-f]{40})$`)
	secretPath    = expression(`^path: (.+?)(?::([0-9]{1,9}))?$`)
	// largeFile matches the messages of GitHub and GitLab about their size limits.
	largeFile = expression(`File "?(.+?)"? is (?:([0-9.]+ [KMGT]?i?B); this exceeds|larger than the allowed size)`)
	// workflowFile matches GitHub's message about a missing permission for workflows.
	workflowFile = expression("workflow `([^`]+)`")
)

// places returns where a remote found what it refuses. It ignores texts that cannot be a
// file's path or are unusually long, so that a remote cannot put its words into our
// sentence.
func places(reason string, remote []string) []space.RemoteLocation {
	var out []space.RemoteLocation
	add := func(l space.RemoteLocation) {
		_, err := space.ParsePath(l.Path)
		l.Rule = commits.Cut(cleanLine(l.Rule), maxRule)
		if err == nil && len(l.Path) <= maxPath && l.Path == cleanLine(l.Path) && len(out) < maxPlaces {
			out = append(out, l)
		}
	}
	if m := workflowFile().FindStringSubmatch(reason); m != nil {
		add(space.RemoteLocation{Path: m[1]})
	}
	rule, commit := "", space.CommitID("")
	for _, line := range remote {
		line = strings.TrimSpace(line)
		if m := secretHeading().FindStringSubmatch(line); m != nil {
			rule, commit = m[1], ""
		} else if m := secretCommit().FindStringSubmatch(line); m != nil {
			commit = space.CommitID(m[1])
		} else if m := secretPath().FindStringSubmatch(line); m != nil && commit != "" {
			n, _ := strconv.Atoi(m[2])
			add(space.RemoteLocation{Commit: commit, Path: m[1], Line: n, Rule: rule})
		} else if m := largeFile().FindStringSubmatch(line); m != nil {
			add(space.RemoteLocation{Path: m[1], Rule: m[2]})
		} else if m := workflowFile().FindStringSubmatch(line); m != nil {
			add(space.RemoteLocation{Path: m[1]})
		}
	}
	return out
}
