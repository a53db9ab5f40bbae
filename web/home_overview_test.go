package web_test

import (
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
)

// The overview counts what each client changed today and in the last seven days.
func TestTheOverviewCountsTheWeek(t *testing.T) {
	h := newHubWorld(t)
	h.use(h.ada, h.space.ID, "Claude Code")
	now := h.clock()
	for _, at := range []time.Time{now.AddDate(0, 0, -9), now.AddDate(0, 0, -3), now.AddDate(0, 0, -2), now} {
		h.commitAs(space.Meta{Message: "x", Client: "claude/2.1", Tool: "bash", Time: at}, "a.md", at.String())
	}
	h.commitAs(space.Meta{Message: "By hand", Client: "browser", Tool: "web", Time: now}, "b.md", "b")
	part := regionOf(t, h.as(h.ada).get("/"), "week")
	for _, s := range []string{"<strong>1</strong> today", "<strong>3</strong> in 7 days", "<bdi>claude</bdi></a></th><td>1</td><td>3</td>", `role="img"`, "activity?client=claude&amp;since="} {
		if !strings.Contains(part, s) {
			t.Errorf("the week lacks %q", s)
		}
	}
	if n := strings.Count(part, "<rect"); n != 7 {
		t.Errorf("the chart has %d days", n)
	}
}

// The overview lists what waits for the person, and says when nothing does.
func TestTheOverviewSaysWhatNeedsThePerson(t *testing.T) {
	h := newHubWorld(t)
	h.use(h.ada, h.space.ID, "Claude Code")
	b := h.as(h.ada)
	want(t, "dismiss the first steps", b.send("/start/dismiss", nil), 303)
	if body := b.get("/").body; strings.Contains(body, `id="needs"`) || !strings.Contains(body, "Nothing needs your attention.") {
		t.Error("something waits in a new space")
	}
	h.commit("Facts", "memory/person/ann.md", annFact, "memory/loose.md", "no fact", "knowledge/a.conflict-0123456789ab.md", "mine",
		"memory/person/.ann.conflict-0123456789ab.md", "no fact, and not listed in the memory")
	part := regionOf(t, b.get("/"), "needs")
	base := "/spaces/" + string(h.space.ID)
	for _, s := range []string{"2 conflicts", base + `/files/knowledge/a.conflict-0123456789ab.md"`, "1 proposed fact", base + `/memory"`, "1 fact file is damaged", base + `/memory#damaged"`} {
		if !strings.Contains(part, s) {
			t.Errorf("what needs the person lacks %q", s)
		}
	}
	// A reader can decide nothing.
	h.use(h.bob, h.space.ID, "Claude Code")
	if body := h.as(h.bob).get("/").body; strings.Contains(body, base+`/memory#damaged"`) {
		t.Error("a reader is asked")
	}
}
