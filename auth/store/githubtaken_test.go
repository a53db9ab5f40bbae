package store_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Attack: somebody who may push to a repository of another space connects it to a space of
// their own. Then the members of each space would see the files of the other.
func TestAttackOneRepositoryForTwoSpaces(t *testing.T) {
	for _, state := range []auth.LinkState{auth.LinkConnected, auth.LinkSuspended} {
		each(t, func(t *testing.T, w *world) {
			ctx := t.Context()
			ann, sp := w.user("ann", true)
			bob, own := w.user("bob", false)
			second, err := w.CreateSpace(ctx, cli, ann.ID, space.NewSpaceID(), "plans")
			if err != nil {
				t.Fatal(err)
			}
			fine(t, w.AddMember(ctx, cli, second.ID, bob.ID, "editor"))
			l := githubLink(ann, second, 70)
			l.State = state
			fine(t, w.LinkRepository(ctx, ann.ID, "web", l))

			err = w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, own, 70))
			wantCode(t, "bob connects it", err, fault.Conflict)
			if text := fault.PublicOf(err); strings.Contains(text, "plans") || strings.Contains(text, string(second.ID)) {
				t.Errorf("who does not own the other space is told its name: %s", text)
			}
			err = w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, sp, 70))
			wantCode(t, "ann connects it to another space of hers", err, fault.Conflict)
			if !strings.Contains(fault.PublicOf(err), "plans") {
				t.Errorf("its owner is not told which: %s", fault.PublicOf(err))
			}
			// A person can connect their space again, or to another repository.
			fine(t, w.LinkRepository(ctx, ann.ID, "web", l))
			fine(t, w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, own, 71)))
			wantCode(t, "bob moves to it", w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, own, 70)), fault.Conflict)
			if kept, ok, err := w.RepositoryLink(ctx, own.ID); err != nil || !ok || kept.Repository != 71 {
				t.Errorf("bob's connection: %+v, %v, %v", kept, ok, err)
			}
			fine(t, w.UnlinkRepository(ctx, ann.ID, "web", second.ID))
			fine(t, w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, own, 70)))
		})
	}
}

// Attack: somebody who lost the right to push, or the App, leaves the connection as it is,
// to keep the repository from everybody else.
func TestAttackSquattedRepository(t *testing.T) {
	for _, state := range []auth.LinkState{auth.LinkLost, auth.LinkRemoved} {
		each(t, func(t *testing.T, w *world) {
			ctx := t.Context()
			ann, sp := w.user("ann", true)
			bob, own := w.user("bob", false)
			fine(t, w.LinkRepository(ctx, bob.ID, "web", githubLink(bob, own, 70)))
			was, _, err := w.RepositoryLink(ctx, own.ID)
			fine(t, err)
			gone := was
			gone.State = state
			if changed, err := w.UpdateLink(ctx, was, gone); err != nil || !changed {
				t.Fatal(changed, err)
			}
			fine(t, w.LinkRepository(ctx, ann.ID, "web", githubLink(ann, sp, 70)))
			if _, ok, err := w.RepositoryLink(ctx, own.ID); err != nil || ok {
				t.Errorf("%s: bob's is there still: %v", state, err)
			}
			if got := w.actions(); !strings.HasSuffix(got, "github.unlink github.link") {
				t.Errorf("the audit log: %s", got)
			}
		})
	}
}

// Attack: both ask at the same moment.
func TestAttackOneRepositoryAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		var work sync.WaitGroup
		var made atomic.Int32
		for _, name := range []string{"ann", "bob", "cyd", "dan"} {
			u, sp := w.user(name, false)
			work.Go(func() {
				switch err := w.LinkRepository(ctx, u.ID, "web", githubLink(u, sp, 70)); {
				case err == nil:
					made.Add(1)
				case fault.CodeOf(err) != fault.Conflict:
					t.Errorf("%s: %v", u.Name, err)
				}
			})
		}
		work.Wait()
		if n := w.count("auth_github_links"); made.Load() != 1 || n != 1 {
			t.Errorf("%d were told that it is theirs, and %d have it", made.Load(), n)
		}
	})
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSeenFlowsStay(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		secret, err := w.PutFlow(t.Context(), "oidc", []byte("nonce"), time.Minute)
		fine(t, err)
		for range 2 {
			if data, err := w.SeeFlow(t.Context(), "oidc", secret.Reveal()); err != nil || string(data) != "nonce" {
				t.Errorf("%q, %v", data, err)
			}
		}
		_, err = w.SeeFlow(t.Context(), "passkey", secret.Reveal())
		wantCode(t, "of another kind", err, fault.NotFound)
		_, err = w.SeeFlow(t.Context(), "oidc", "x")
		wantCode(t, "no secret", err, fault.NotFound)
		w.pass(time.Minute)
		_, err = w.SeeFlow(t.Context(), "oidc", secret.Reveal())
		wantCode(t, "expired", err, fault.NotFound)
	})
}
