package transport_test

import (
	"encoding/base64"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// Attack: a remote on the same server tries to get another remote's credential.
func TestACredentialIsForItsURLAlone(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	other := remotetest.New(t, remotetest.Options{})
	other.Create("notes")
	e := r.endpoint()
	e.Credential = space.Credential{Secret: secret}
	for _, code := range []int{301, 302, 303, 307, 308} {
		r.Inject(func(q remotetest.Request) remotetest.Fault {
			return remotetest.Redirect(code, other.URL("notes")+"/info/refs?service="+q.Query.Get("service"))
		})
		_, err := r.c.List(t.Context(), e)
		fails(t, err, transport.Moved)
		fails(t, r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, nil), transport.Moved)
		dir := repo(t)
		fails(t, r.c.Push(t.Context(), e, dir, space.CommitID(commit(t, dir, "", "a", "b")), "main", nil), transport.Moved)
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests reached the other server", n)
	}
	for _, q := range r.Requests() {
		if got := q.Header.Get("Authorization"); got != "Basic "+base64.StdEncoding.EncodeToString([]byte("x-access-token:"+secret)) {
			t.Errorf("a request has the authorization %q", got)
		}
	}
}
