package server

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// What a person keeps or undoes of what an AI changed is in the audit log: who, in
// which space, and what. What was not done is not.
func TestDecisionsAreInTheAuditLog(t *testing.T) {
	ctx := t.Context()
	c := testCore(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Core: c}
	s.ctx, s.stop = context.WithCancel(ctx)
	t.Cleanup(func() {
		s.stop()
		s.work.Wait()
	})
	var o web.Options
	must(s.addActivity(&o))
	spaces, people := map[string]space.SpaceID{}, map[string]space.UserID{}
	for _, name := range []string{"ann", "bob"} {
		u, err := c.Admin.AddUser(ctx, name, false)
		must(err)
		own, err := c.Accounts.SpacesOf(ctx, u.ID)
		must(err)
		spaces[name], people[name] = own[0].ID, u.ID
	}
	waits := func(of string) web.Review {
		t.Helper()
		list, behind, err := o.Reviews.Waiting(ctx, spaces[of])
		for err == nil && behind {
			list, behind, err = o.Reviews.Waiting(ctx, spaces[of])
		}
		must(err)
		if len(list) != 1 {
			t.Fatalf("%d wait", len(list))
		}
		return list[0]
	}
	write := func(of, path, text string) web.Review {
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
	meta := space.Meta{Author: space.Person{Name: "Bob"}, Message: "Undo", Tool: "web-undo", Client: "browser"}
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
			id, by := spaces[tt.of], people[tt.by]
			// Another content than the one that waits.
			wrong := space.BlobID("0123456789012345678901234567890123456789")
			_, undo := o.Reviews.Undo(ctx, id, by, r.Path, wrong, r.Mode, meta)
			for _, err := range []error{undo, o.Reviews.Keep(ctx, id, by, r.Path, wrong, r.Mode)} {
				if fault.CodeOf(err) != fault.Conflict {
					t.Fatalf("what nobody saw: %v", err)
				}
			}
			if list := rows(); len(list) > 0 {
				t.Errorf("what was refused is noted: %+v", list)
			}
			want := map[string]any{"path": tt.path, "blob": string(r.Blob)}
			if tt.undo {
				made, err := o.Reviews.Undo(ctx, id, by, r.Path, r.Blob, r.Mode, meta)
				must(err)
				want["commit"] = string(made.ID)
			} else {
				must(o.Reviews.Keep(ctx, id, by, r.Path, r.Blob, r.Mode))
			}
			list := rows()
			if len(list) != 1 {
				t.Fatalf("the audit log has %+v", list)
			}
			e, detail := list[0], map[string]any{}
			must(json.Unmarshal([]byte(e.Detail), &detail))
			if e.Action != tt.action || e.Subject != string(id) || e.Actor != (store.Actor{User: by, Via: "web"}) {
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
