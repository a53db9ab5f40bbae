package server

import (
	"context"
	"fmt"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
)

// maxListed is the maximum number of sources that a check lists.
const maxListed = 5

// sources checks the sources that follow an upstream. It lists only the sources that a person must
// look at.
func (h *health) sources(context.Context) service.HealthCheck {
	const name = "Sources"
	st, unapplied := h.s.syncs.Stats(), h.s.file.unapplied()
	if st.Syncs == 0 && len(unapplied) == 0 && h.s.snapshot.trouble() == "" {
		return service.HealthCheck{Name: name, State: service.HealthOff, Detail: "No source follows an upstream.", Remedy: "To add a source, open Sources and press Add a source."}
	}
	c := good(name, "%s.", follow(st.Syncs))
	if st.Running > 0 {
		c.Detail += fmt.Sprintf(" Being updated now: %d.", st.Running)
	}
	var remedies []string
	if len(st.Left) > 0 {
		c.State = service.HealthNote
		c.Detail += " No longer in the configuration file: " + listedSyncs(st.Left) + "."
		remedies = append(remedies, "Remove such a source on the page Sources, or put its entry back into the file.")
	}
	if len(st.Failing) > 0 {
		c.State = service.HealthBad
		c.Detail += " Not up to date: " + listedSyncs(st.Failing) + "."
		remedies = append(remedies, "Open the source on the page Sources, which says why and what to do.")
	}
	for _, p := range unapplied[:min(len(unapplied), maxListed)] {
		c.State = service.HealthBad
		if p.ID != "" {
			c.Detail += " " + p.ID + ":"
		}
		c.Detail += " " + p.Problem
	}
	if len(unapplied) > 0 {
		remedies = append(remedies, "Correct the sources in the configuration file. The server reads them again when the file changes.")
	}
	if problem := h.s.snapshot.trouble(); problem != "" {
		c.State = service.HealthBad
		c.Detail += " The snapshot repository is not up to date: " + problem
		remedies = append(remedies, "Correct the section snapshot of the configuration, and restart the server.")
	}
	c.Remedy = strings.Join(remedies, " ")
	return c
}

func follow(n int) string {
	if n == 1 {
		return "1 source follows an upstream"
	}
	return fmt.Sprintf("%d sources follow an upstream", n)
}

func listedSyncs(all []space.Sync) string {
	var out []string
	for _, s := range all[:min(len(all), maxListed)] {
		out = append(out, fmt.Sprintf("%s (%s)", s.Source, s.State))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}
