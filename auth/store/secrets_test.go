package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Attack: somebody searches a copy of the database for secrets.
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
		f, err := w.PutFlow(t.Context(), "oidc", []byte("the nonce"), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets["a flow"], secrets["what a flow remembers"] = f.Reveal(), "the nonce"
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
		sealed := githubApp(7)
		secrets["the App's client secret"], secrets["the App's key"], secrets["the App's webhook secret"] = sealed.Secrets.ClientSecret, sealed.Secrets.PrivateKey, sealed.Secrets.Webhook
		if err := w.SetGitHubApp(t.Context(), ann.ID, "web", sealed); err != nil {
			t.Fatal(err)
		}
		if err := w.LinkRepository(t.Context(), ann.ID, "web", githubLink(ann, sp, 70)); err != nil {
			t.Fatal(err)
		}
		if err := w.AskForApproval(t.Context(), sp.ID, ann.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.SeenDelivery(t.Context(), "11111111-aaaa"); err != nil {
			t.Fatal(err)
		}
		if err := w.SetSetting(t.Context(), cli, "invite", "admins"); err != nil {
			t.Fatal(err)
		}
		w.removed("gone")
		w.deleted(ann)
		// Failures do not write secrets to the log either.
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
		if !strings.Contains(dump, challenge(verifier)) || !strings.Contains(dump, "Claude") {
			t.Fatal("the dump does not hold what is in the database")
		}
		for what, s := range secrets {
			// parts are the secret part of each kind, as text and as bytes.
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

// Attack: a stranger's text contains bytes that PostgreSQL refuses. The text is then
// unknown or malformed; the server does not fail.
func TestTextThatNoRowCanHold(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		for _, bad := range []string{"\x00", "a\x00b", "\xff", "a\xc3", "\ufffd"} {
			for name, tt := range map[string]struct {
				do   func() error
				want fault.Code
			}{
				"Client":           {func() error { _, err := w.Client(t.Context(), bad); return err }, fault.NotFound},
				"DeleteClient":     {func() error { return w.DeleteClient(t.Context(), cli, bad) }, fault.NotFound},
				"User":             {func() error { _, err := w.User(t.Context(), space.UserID(bad)); return err }, fault.NotFound},
				"FindUser":         {func() error { _, err := w.FindUser(t.Context(), bad); return err }, fault.NotFound},
				"Space":            {func() error { _, err := w.Space(t.Context(), space.SpaceID(bad)); return err }, fault.NotFound},
				"FindSpace":        {func() error { _, err := w.FindSpace(t.Context(), ann.ID, bad); return err }, fault.NotFound},
				"AddMember":        {func() error { return w.AddMember(t.Context(), cli, space.SpaceID(bad), ann.ID, space.Reader) }, fault.NotFound},
				"RemoveMember":     {func() error { return w.RemoveMember(t.Context(), cli, sp.ID, space.UserID(bad)) }, fault.NotFound},
				"RemoveUser":       {func() error { return w.RemoveUser(t.Context(), cli, space.UserID(bad)) }, fault.NotFound},
				"UserByIdentity":   {func() error { _, err := w.UserByIdentity(t.Context(), bad, bad); return err }, fault.NotFound},
				"UserByEmail":      {func() error { _, err := w.UserByEmail(t.Context(), bad); return err }, fault.NotFound},
				"UnlinkIdentity":   {func() error { return w.UnlinkIdentity(t.Context(), cli, ann.ID, bad, bad) }, fault.NotFound},
				"RevokeGrant":      {func() error { return w.RevokeGrant(t.Context(), cli, space.GrantID(bad), ann.ID) }, fault.NotFound},
				"RevokeKey":        {func() error { return w.RevokeKey(t.Context(), cli, space.GrantID(bad), ann.ID) }, fault.NotFound},
				"RevokeInvitation": {func() error { return w.RevokeInvitation(t.Context(), cli, bad, ann.ID) }, fault.NotFound},
				"EndSession":       {func() error { return w.EndSession(t.Context(), cli, ann.ID, bad) }, fault.NotFound},
				"RemovePasskey":    {func() error { return w.RemovePasskey(t.Context(), cli, ann.ID, []byte(bad)) }, fault.NotFound},
				"Redeem":           {func() error { _, err := w.Redeem(t.Context(), auth.Redemption{Code: bad, Client: bad}); return err }, fault.Invalid},
				"Refresh": {func() error {
					_, err := w.Refresh(t.Context(), auth.RefreshRequest{Refresh: bad, Client: bad})
					return err
				}, fault.Invalid},
				"External": {func() error {
					x := external("nobody")
					x.Subject = bad
					_, err := w.External(t.Context(), x)
					return err
				}, fault.NotFound},
			} {
				wantCode(t, fmt.Sprintf("%s with %q", name, bad), tt.do(), tt.want)
			}
			if bad == "\ufffd" {
				continue // PostgreSQL can store it
			}
			c := consent(ann, sp)
			c.Client = bad
			_, err := w.CreateCode(t.Context(), c)
			wantCode(t, "CreateCode", err, fault.Invalid)
			wantCode(t, "CreateClient", w.CreateClient(t.Context(), cli, auth.Client{ID: bad}), fault.Invalid)
			wantCode(t, "LinkIdentity", w.LinkIdentity(t.Context(), cli, store.Identity{User: ann.ID, Issuer: "x", Subject: bad}), fault.Invalid)
			x := external("ann")
			x.Client = bad
			_, err = w.External(t.Context(), x)
			wantCode(t, "External", err, fault.Unauthenticated)
		}
	})
}
