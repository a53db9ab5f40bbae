package memory

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// asksShown limits the facts that one ask lists. Facts that may contradict each other stay
// together, so their ask can have more.
const asksShown = 5

// ask is a group of facts that need a decision of the visitor.
type ask struct {
	ID, Title, Text string
	Facts           []askedFact
	More            int    // number of facts that are not listed
	MoreURL         string // the page that shows those facts; "" if there is none
}

// askedFact is a fact of an ask. Together reports that it belongs to the fact before it, with
// which it may be in conflict.
type askedFact struct {
	knownFact
	Together bool
}

// asks adds the facts to look at: those that contradict or repeat each other, those that
// have expired, and those that were inferred and nobody has confirmed. It returns the paths of
// the listed facts.
func (s *pages) asks(v *web.Visit, m service.View, all []service.MemoryFact, body *memoryPage) (map[space.Path]bool, error) {
	audit, err := s.Service.AuditMemory(v.R.Context(), v.Actor(), service.AuditMemoryInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return nil, err
	}
	against := ask{ID: "against", Title: "May contradict each other", Text: "These facts have the same name or nearly the same words. Confirm the one that is true, and forget the other."}
	over := ask{ID: "over", Title: "Expired", Text: "Your AIs no longer use these facts. “Keep” removes the end date.", MoreURL: body.ExpiredURL}
	proposed := ask{ID: "proposed", Title: "Not confirmed yet", Text: "Nobody has confirmed these facts. Your AIs already use them."}
	add := func(a *ask, f service.MemoryFact) {
		if len(a.Facts) >= asksShown {
			a.More++
			return
		}
		a.Facts = append(a.Facts, askedFact{knownFact: linked(f, m.ID)})
	}
	seen := map[space.Path]bool{}
	for _, x := range audit.Findings {
		if x.Kind != service.AuditSameKey && x.Kind != service.AuditAlike {
			continue
		}
		shown := len(against.Facts) < asksShown // a group is listed whole, unless it is very large
		for i, f := range x.Facts {
			seen[f.Path] = true
			if !shown || len(against.Facts) >= 2*asksShown {
				against.More++
				continue
			}
			against.Facts = append(against.Facts, askedFact{linked(f, m.ID), i > 0})
		}
		against.More += x.Left
	}
	for _, f := range all {
		switch {
		case f.Problem != "" || seen[f.Path]:
		case f.Expired:
			add(&over, f)
		case f.Source == facts.Inferred:
			add(&proposed, f)
		}
	}
	listed := map[space.Path]bool{}
	if len(proposed.Facts) == 1 {
		proposed.Text = "Nobody has confirmed this fact. Your AIs already use it."
	}
	if len(over.Facts) == 1 {
		over.Text = "Your AIs no longer use this fact. “Keep” removes the end date."
	}
	body.expiredListed = len(over.Facts) + over.More
	for _, a := range []ask{against, over, proposed} {
		if n := len(a.Facts); n > 0 {
			body.Asks = append(body.Asks, a)
			body.Asking += n + a.More
		}
		for _, f := range a.Facts {
			listed[f.Path] = true
		}
	}
	return listed, nil
}

// didURL adds to an address what the visitor just did, and the commit that did it.
func didURL(where, did string, c space.CommitID) string {
	sep := "?"
	if strings.Contains(where, "?") {
		sep = "&"
	}
	return where + sep + url.Values{"did": {did}, "commit": {string(c)}}.Encode()
}

// said confirms what the visitor just did, and returns the commit to undo. Anybody can send a
// link to this page, so said accepts only a recent commit that was made in the browser, and takes
// the names from the commit's message. all are the facts of the space.
func (s *pages) said(v *web.Visit, m service.View, all []service.MemoryFact) (text, undo string) {
	q := v.R.URL.Query()
	c, ok := s.FreshChange(v, m, space.CommitID(q.Get("commit")))
	if !ok {
		return "", ""
	}
	subject, _, _ := strings.Cut(c.Message, "\n")
	_, names, _ := strings.Cut(subject, " ")
	if i := slices.IndexFunc(all, func(f service.MemoryFact) bool { return f.Problem == "" && f.Name() == names }); i >= 0 {
		names = "“" + web.Shorten(all[i].Value, 120) + "”"
	}
	names = web.Shorten(names, 130)
	switch q.Get("did") {
	case "saved":
		text = "Saved: " + names + "."
	case "forgotten":
		text = "Forgotten: " + names + "."
	case "repaired":
		text = "Repaired: " + names + ". Confirm the fact if it is true."
	case "undone":
		text = "Undone."
	default:
		return "", ""
	}
	if m.Role == space.Reader {
		return text, ""
	}
	return text, string(c.ID)
}

// undoChange handles POST /spaces/{id}/memory/undo. It undoes what a person just did on this
// page.
func (s *pages) undoChange(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	id := space.CommitID(v.R.PostFormValue("commit"))
	if !id.Valid() {
		return web.ErrGone
	}
	c, err := s.Service.Revert(v.R.Context(), v.Actor(), service.RevertInput{Space: service.SpaceRef{ID: m.ID}, Commits: []space.CommitID{id}})
	switch {
	case err != nil:
		return web.Gone(err)
	case len(c.Conflicts)+len(c.Rejected) > 0:
		return s.againFacts(v, m, http.StatusConflict, "The fact has changed again since then, so it stays as it is. Its history has every version.")
	case !c.Changed:
		return s.See(v, "/spaces/"+string(m.ID)+"/memory")
	}
	return s.See(v, didURL("/spaces/"+string(m.ID)+"/memory", "undone", c.ID))
}

// repairFact handles POST /spaces/{id}/memory/repair.
func (s *pages) repairFact(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	done, err := s.Service.RepairFact(v.R.Context(), v.Actor(), service.RepairFactInput{
		Space: service.SpaceRef{ID: m.ID}, Path: space.Path(v.R.PostFormValue("path")), Base: space.BlobID(v.R.PostFormValue("base")),
	})
	switch {
	case web.IsRefusal(err):
		return s.againFacts(v, m, web.AsPage(err).Status, "Nothing was repaired. "+fault.PublicOf(err))
	case err != nil:
		return web.Gone(err)
	}
	return s.See(v, didURL("/spaces/"+string(m.ID)+"/memory", "repaired", done.Commit))
}
