package server

import (
	"context"
	"fmt"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
)

// maxListed limits the sources that a check lists.
const maxListed = 5

// sources checks the sources that follow an upstream. Only those that need a person are listed.
func (h *health) sources(context.Context) service.HealthCheck {
	const name = "Sources"
	st, unapplied := h.s.syncs.Stats(), h.s.file.unapplied()
	if st.Syncs == 0 && len(unapplied) == 0 && h.s.snapshot.trouble() == "" {
		return service.HealthCheck{Name: name, State: service.HealthOff, Detail: "None follows an upstream.", Remedy: "satchel source add adds one; so does an entry of the configuration file."}
	}
	c := good(name, "%d follow an upstream, %d are being synced.", st.Syncs, st.Running)
	var remedies []string
	if len(st.Left) > 0 {
		c.State = service.HealthNote
		c.Detail += " No longer in the configuration file: " + listedSyncs(st.Left) + "."
		remedies = append(remedies, "Remove such a source with satchel source remove ID, or put its entry back.")
	}
	if len(st.Failing) > 0 {
		c.State = service.HealthBad
		c.Detail += " Not up to date: " + listedSyncs(st.Failing) + "."
		remedies = append(remedies, "satchel source status ID says why, and what to do.")
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
