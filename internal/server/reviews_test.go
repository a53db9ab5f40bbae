package server

import (
	"encoding/json"
	"slices"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// The audit log has every decision about what an AI changed: who decided, in which space,
// about what. It has no decision that was refused.
func TestDecisionsAreInTheAuditLog(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	spaces, people := map[string]space.SpaceID{}, map[string]store.User{}
	for _, name := range []string{"ann", "bob"} {
		u := addUser(t, c.Service, name, false)
		own, err := c.Accounts.SpacesOf(ctx, u.ID)
		must(err)
		spaces[name] = own[0].ID
		people[name], err = c.Accounts.User(ctx, u.ID)
		must(err)
	}
	must(c.Accounts.AddMember(ctx, store.Actor{Via: "test"}, spaces["ann"], people["bob"].ID, space.Editor))
	waits := func(of string) space.Review {
		t.Helper()
		list, behind, err := c.reviews.Waiting(ctx, spaces[of])
		for err == nil && behind {
			list, behind, err = c.reviews.Waiting(ctx, spaces[of])
		}
		must(err)
		if len(list) != 1 {
			t.Fatalf("%d wait", len(list))
		}
		return list[0]
	}
	write := func(of, path, text string) space.Review {
		t.Helper()
		ch := space.Change{Path: path, Content: []byte(text)}
		b, mode, ok, err := c.Git.Blob(ctx, spaces[of], "", space.Path(path))
		must(err)
		if ok {
			ch.Base, ch.BaseMode = b, mode
		}
		if text == "" {
			ch.Op, ch.Content = space.Delete, nil
		}
		made, err := c.Git.Commit(ctx, spaces[of], space.ChangeSet{Changes: []space.Change{ch}}, space.Meta{Message: "Obey", Tool: "bash", Client: "claude-code"})
		must(err)
		if !made.Changed || len(made.Rejected) > 0 {
			t.Fatalf("%+v", made)
		}
		return waits(of)
	}
	newest := int64(0)
	rows := func() (out []store.Entry) {
		t.Helper()
		all, err := c.Accounts.Audit(ctx, 0, 100)
		must(err)
		for _, e := range slices.Backward(all) {
			if e.ID > newest {
				newest = e.ID
				out = append(out, e)
			}
		}
		return out
	}
	const skill = "skills/mail/SKILL.md"
	for _, tt := range []struct {
		name, of, by, path, text, action string
		undo                             bool
	}{
		{"a file is kept", "ann", "ann", skill, "---\nname: mail\ndescription: d\n---\nOne\n", "review.keep", false},
		{"a change is undone by another member", "ann", "bob", skill, "---\nname: mail\ndescription: d\n---\nTwo\n", "review.undo", true},
		{"a deletion is undone", "ann", "ann", skill, "", "review.undo", true},
		{"a deletion is kept", "ann", "bob", skill, "", "review.keep", false},
		{"of another space", "bob", "bob", "resources/instructions.md", "Be kind.\n", "review.keep", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := write(tt.of, tt.path, tt.text)
			rows()
			id, by := spaces[tt.of], service.Person(people[tt.by])
			in := service.DecideReviewInput{Space: service.SpaceRef{ID: id}, Path: r.Path, Blob: r.Blob, Mode: r.Mode}
			// Another content than the one that waits.
			wrong := in
			wrong.Blob = "0123456789012345678901234567890123456789"
			_, undo := c.Service.UndoReview(ctx, by, wrong)
			_, keep := c.Service.KeepReview(ctx, by, wrong)
			for _, err := range []error{undo, keep} {
				if fault.CodeOf(err) != fault.Conflict {
					t.Fatalf("what nobody saw: %v", err)
				}
			}
			if list := rows(); len(list) > 0 {
				t.Errorf("what was refused is noted: %+v", list)
			}
			want := map[string]any{"path": tt.path, "blob": string(r.Blob)}
			if tt.undo {
				made, err := c.Service.UndoReview(ctx, by, in)
				must(err)
				if want["commit"] = string(made.ID); made.Author.Name != tt.by {
					t.Errorf("%s undid it", made.Author.Name)
				}
			} else {
				_, err := c.Service.KeepReview(ctx, by, in)
				must(err)
			}
			list := rows()
			if len(list) != 1 {
				t.Fatalf("the audit log has %+v", list)
			}
			e, detail := list[0], map[string]any{}
			must(json.Unmarshal([]byte(e.Detail), &detail))
			if e.Action != tt.action || e.Subject != string(id) || e.Actor != (store.Actor{User: people[tt.by].ID, Via: "web"}) {
				t.Errorf("%+v", e)
			}
			for k, v := range want {
				if detail[k] != v {
					t.Errorf("its %s is %v, want %v", k, detail[k], v)
				}
			}
			if len(detail) != len(want) {
				t.Errorf("it tells %v", detail)
			}
		})
	}
}
