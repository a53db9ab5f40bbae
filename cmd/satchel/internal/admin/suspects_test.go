package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/cmd/satchel/internal/admin"
	"satchel/gitstore/remotetest"
	"satchel/internal/space"
)

// What may be a password is told of by its place alone, with a bound on how many and
// for how long; who set a remote is told, and it is set.
func TestSuspects(t *testing.T) {
	ctx := t.Context()
	l := newLocal(t)
	ann, err := l.AddUser(ctx, "ann", true)
	if err != nil {
		t.Fatal(err)
	}
	st, err := l.SpaceStatus(ctx, ann.Name)
	if err != nil {
		t.Fatal(err)
	}
	id := st.Space.ID
	const secret = "kT9-vQ2x-Lm4p-Zr7w"
	changes := []space.Change{{Path: "plain.md", Content: []byte("nothing\n")}}
	for i := range 24 {
		changes = append(changes, space.Change{Path: fmt.Sprintf("wifi-%02d.md", i), Content: []byte("# Wifi\n\npassword: " + secret + "\n")})
	}
	if _, err := l.Git.Commit(ctx, id, space.ChangeSet{Changes: changes}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	found, err := admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, time.Hour)
	if err != nil || len(found.Places) != 20 || found.More != 4 || found.Partly || found.Places[0] != (admin.Suspect{Path: "wifi-00.md", Line: 3}) {
		t.Fatalf("%+v, %v", found, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", found), secret) {
		t.Error("the value is told")
	}
	if found, err = admin.SuspectsIn(ctx, l.Git, l.Secrets, id, false, time.Nanosecond); err != nil || !found.Partly {
		t.Errorf("without time: %+v, %v", found, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err = admin.SuspectsIn(gone, l.Git, l.Secrets, id, false, time.Hour); !errors.Is(err, context.Canceled) && err == nil {
		t.Errorf("for nobody: %v", err)
	}

	server := remotetest.New(t, remotetest.Options{Password: "canary-token"})
	server.Create("notes")
	r := admin.RemoteRequest{User: "ann", URL: server.URL("notes"), Token: "canary-token", Trusted: true}
	l.SuspectTime = time.Hour
	if st, err = l.SetRemote(ctx, r, func(string) {}); err != nil || st.Suspects == nil || len(st.Suspects.Places) != 20 || server.Head("notes", "main") == "" {
		t.Errorf("a new remote: %+v, %v", st.Suspects, err)
	}
	if st, err = l.SetRemote(ctx, r, func(string) {}); err != nil || st.Suspects != nil {
		t.Errorf("the same one again: %+v, %v", st.Suspects, err)
	}
}
