package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// Attack: a copy of the database, from which every secret must be missing.
func TestDatabaseHoldsNoSecret(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		bob, _ := w.user("bob", false)
		secrets := map[string]string{"a key": w.key(ann, sp, "read"), "the server's key": tokenKey}
		code := w.code(consent(ann, sp))
		secrets["a code"] = code.Reveal()
		tok, err := w.Redeem(t.Context(), redemption(code))
		if err != nil {
			t.Fatal(err)
		}
		next := w.refresh(renewal(tok.Refresh))
		secrets["an access token"], secrets["a refresh token"] = tok.Access.Reveal(), tok.Refresh.Reveal()
		secrets["the next access token"], secrets["the next refresh token"] = next.Access.Reveal(), next.Refresh.Reveal()
		secrets["the verifier"] = verifier
		session, _ := w.session(ann)
		rotated, err := w.RotateSession(t.Context(), session.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		secrets["a session"], secrets["a rotated session"] = session.Reveal(), rotated.Reveal()
		l, err := w.CreateLink(t.Context(), cli, ann.ID, "link", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets["a link"] = l.Reveal()
		f, err := w.PutFlow(t.Context(), "oidc", []byte("nonce"), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets["a flow"] = f.Reveal()
		secrets["an invitation"] = w.invite(store.NewInvitation{By: ann.ID, Space: sp.ID, Role: space.Reader})
		if _, err := w.AcceptInvitation(t.Context(), cli, secrets["an invitation"], bob.ID); err != nil {
			t.Fatal(err)
		}
		link(t, w, ann, "https://issuer.example", "ann-1")
		if err := w.AddPasskey(t.Context(), cli, passkey(ann, "one")); err != nil {
			t.Fatal(err)
		}
		if err := w.RegisterClient(t.Context(), auth.Client{ID: "client-1"}); err != nil {
			t.Fatal(err)
		}
		// What fails is in no log either.
		w.pass(time.Hour)
		w.Redeem(t.Context(), redemption(code))
		w.Refresh(t.Context(), renewal(tok.Refresh))

		names := []string{"auth_audit"}
		for n := range w.tables() {
			names = append(names, n)
		}
		slices.Sort(names)
		var all strings.Builder
		for _, n := range names {
			rows, err := w.db.Read(t.Context()).Raw("SELECT * FROM " + n).Rows()
			if err != nil {
				t.Fatal(err)
			}
			cols, err := rows.Columns()
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for ; rows.Next(); count++ {
				cells := make([]any, len(cols))
				for i := range cells {
					cells[i] = new(any)
				}
				if err := rows.Scan(cells...); err != nil {
					t.Fatal(err)
				}
				for _, c := range cells {
					switch v := (*c.(*any)).(type) {
					case []byte:
						fmt.Fprintf(&all, "%s\n", v)
					default:
						fmt.Fprintf(&all, "%v\n", v)
					}
				}
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
			if count == 0 {
				t.Errorf("%s is empty, so that nothing of it was looked at", n)
			}
		}
		dump := all.String()
		if !strings.Contains(dump, challenge(verifier)) || !strings.Contains(dump, "nonce") {
			t.Fatal("the dump does not hold what is in the database")
		}
		for what, s := range secrets {
			// Each kind's secret part, in text and in bytes.
			parts := []string{s}
			for _, k := range []auth.Kind{auth.KindAccess, auth.KindRefresh, auth.KindCode, auth.KindSession, auth.KindFlow, auth.KindLogin, auth.KindInvitation, auth.KindKey} {
				if _, b, err := auth.ParseSecret(k, s); err == nil {
					parts = append(parts, strings.TrimPrefix(s, string(k)), string(b), string(b[max(0, len(b)-32):]))
				}
			}
			for _, p := range parts {
				if strings.Contains(dump, p) {
					t.Errorf("%s is in the database", what)
				}
			}
		}
	})
}
