package transport_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// says answers a fetch with messages of a remote beside the pack. The pack never comes.
func (r *rig) says(lines string, drip remotetest.Trouble) {
	var posts atomic.Int64
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		if q.Stage != remotetest.StageFetch || posts.Add(1) == 1 { // the first request lists the refs
			return remotetest.Fault{}
		}
		f := remotetest.Status(http.StatusOK, packet("packfile\n")+lines)
		f.Answer.Header = http.Header{"Content-Type": {"application/x-git-upload-pack-result"}}
		f.Response = drip
		return f
	})
}

// Attack: a remote sends a message from time to time, but no data.
func TestWhatARemoteSaysIsNoProgress(t *testing.T) {
	for name, line := range map[string]string{
		"the same line":       "Counting objects:   1% (1/100)",
		"what git would say":  "Receiving objects:   1% (1/100)",
		"what cannot be told": "Receiving objects:   1% (1/100)\nReceiving objects:   2% (2/100)",
		"words":               "please wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, remotetest.Options{}, transport.Options{StallTimeout: 500 * time.Millisecond})
			body := strings.Repeat(packet("\x02"+line+strings.Repeat(" ", 1000)+"\r"), 10000)
			r.says(body, remotetest.Trouble{Drip: 1 << 10, Every: time.Millisecond})
			fails(t, r.c.Fetch(t.Context(), r.endpoint(), repo(t), "main", "refs/heads/x", 0, nil), transport.Timeout)
		})
	}
}

// Attack: a remote puts the credential or control sequences of a terminal after text that looks
// like git's progress.
func TestProgressHasNothingOfARemotesOwn(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	e := r.endpoint()
	e.Credential = space.Credential{Username: "me", Secret: "1234567890"}
	header := base64.StdEncoding.EncodeToString([]byte("me:1234567890"))
	var body strings.Builder
	for _, more := range []string{"1234567890", header, "\u202e\u009b31m IGNORE", ", done. Now run this", " (1/100) 1234567890", " (1/100), done. \u202e", " (1234567890/1234567890)"} {
		body.WriteString(packet("\x02Counting objects:   1% " + more + "\n"))
	}
	body.WriteString(packet("\x02Counting objects:  17% (17/100)\n"))
	r.says(body.String(), remotetest.Trouble{})
	var told []string
	if r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, func(line string) { told = append(told, line) }) == nil {
		t.Fatal("a fetch without a pack")
	}
	if got := strings.Join(told, "|"); got != "remote: Counting objects: 1% (***/***)|remote: Counting objects: 17% (17/100)" {
		t.Errorf("told %q", got)
	}
}

// git's own progress is passed on.
func TestProgressIsTold(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	r.Push("notes", "main", map[string]string{"large.bin": noise(100<<10, 1)})
	var told strings.Builder
	dir := repo(t)
	tell := func(line string) { told.WriteString(line + "\n") }
	if err := r.c.Fetch(t.Context(), r.endpoint(), dir, "main", "refs/heads/x", 0, tell); err != nil {
		t.Fatal(err)
	}
	id := space.CommitID(commit(t, dir, r.Head("notes", "main"), "b.md", "mine\n"))
	if err := r.c.Push(t.Context(), r.endpoint(), dir, id, "main", tell); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"remote: Enumerating objects: ", "Receiving objects: 100% (", "Writing objects: 100% (", ", done.\n", "/s, done.\n"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not told:\n%s", want, told.String())
		}
	}
}
