package transport_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// token looks like no other text, and is also the name of a host.
const token = "cnry9d1b8e2f7a6c5b4d3e2f"

// leaks checks that an error shows neither the token nor most of it.
func leaks(t *testing.T, how string, err error) {
	t.Helper()
	e := fails(t, err, transport.ProblemOf(err))
	text := fmt.Sprintf("%v %+v %q %q %q %q %+v", err, *e, e.Public(), e.Remedy(), e.Target, e.Said, e.Paths)
	header := base64.StdEncoding.EncodeToString([]byte("me:" + token))
	low := strings.ToLower(text)
	for _, part := range []string{token[:12], token[12:], header[:16], header[len(header)-16:], hex.EncodeToString([]byte(token))[:16]} {
		if strings.Contains(low, strings.ToLower(part)) {
			t.Errorf("%s: %q shows in %s", how, part, text)
		}
	}
}

func tokenRig(t *testing.T) (*rig, transport.Endpoint) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	e := r.endpoint()
	e.Credential = space.Credential{Username: "me", Secret: token}
	return r, e
}

// Attack: a remote repeats the credential at a place where text is cut, or in another form.
func TestARepeatedCredentialIsSeenBeforeTheCut(t *testing.T) {
	r, e := tokenRig(t)
	header := base64.StdEncoding.EncodeToString([]byte("me:" + token))
	dir := repo(t)
	mine := space.CommitID(commit(t, dir, "", "b.md", "mine\n"))
	forms := map[string]string{
		"zero-width": token[:8] + "\u200b" + token[8:], "direction": token[:3] + "\u202e" + token[3:], "control": token[:12] + "\x01" + token[12:],
		"small": strings.ToLower(header), "capitals": strings.ToUpper(token), "hexadecimal": hex.EncodeToString([]byte(token)),
	}
	for _, at := range []int{120, 160, 200, 253, 300, 500, 1000, 1024} {
		for _, kept := range []int{14, len(token) - 4} {
			forms[fmt.Sprintf("the token at %d, %d kept", at, kept)] = strings.Repeat("A", at-kept) + token + " tail"
			forms[fmt.Sprintf("the header at %d, %d kept", at, kept)] = strings.Repeat("A", at-kept) + header + " tail"
		}
	}
	for how, text := range forms {
		for _, lines := range []string{
			"error: " + text + "\n",
			text + "\n",
			"error: GH013: x\n- Push cannot contain secrets\n  —— " + text + " ——\n- commit: " + strings.Repeat("1", 40) + "\npath: " + text + ":3\n",
		} {
			r.Refuse("notes", "other", remotetest.Refusal{Text: lines})
			leaks(t, "a refusal with "+how, r.c.Push(t.Context(), e, dir, mine, "other", nil))
			if strings.HasPrefix(how, "the ") && !strings.HasPrefix(lines, "error: GH013") {
				break // one line is enough for the same cut
			}
		}
		r.Inject(func(remotetest.Request) remotetest.Fault { return remotetest.Status(http.StatusForbidden, text+"\n") })
		_, err := r.c.List(t.Context(), e)
		leaks(t, "a body with "+how, err)
		r.Inject(func(remotetest.Request) remotetest.Fault {
			f := remotetest.Status(http.StatusOK, packet("ERR "+text))
			f.Answer.Header = http.Header{"Content-Type": {"application/x-git-upload-pack-advertisement"}}
			return f
		})
		_, err = r.c.List(t.Context(), e)
		leaks(t, "an ERR line with "+how, err)
		r.Inject(nil)
	}
	for kept := 1; kept <= len(token); kept++ { // the limit of a body is 4 KiB
		body := strings.Repeat(strings.Repeat("=", 398)+"\n", 9)
		body += strings.Repeat("=", 4096-len(body)-kept-1) + "\n" + token
		r.Inject(func(remotetest.Request) remotetest.Fault { return remotetest.Status(http.StatusForbidden, body) })
		_, err := r.c.List(t.Context(), e)
		leaks(t, fmt.Sprintf("a body that ends in %d letters of it", kept), err)
	}
}

// Attack: a remote redirects to a host whose name is the token.
func TestTheHostOfARedirectIsNotTheCredential(t *testing.T) {
	r, e := tokenRig(t)
	header := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("me:"+token)), "=")
	for _, to := range []string{
		"http://" + token + ".x.example/", "https://" + strings.ToUpper(token) + ".example/notes.git/info/refs?service=git-upload-pack",
		"http://x." + strings.ToLower(header) + ".example/", "http://" + strings.Repeat("a.", 117) + token + ".example/",
		"http://evil.example/" + token, "/" + token + "/x", "gopher://" + token + "/",
	} {
		r.Inject(func(remotetest.Request) remotetest.Fault { return remotetest.Redirect(http.StatusFound, to) })
		_, err := r.c.List(t.Context(), e)
		fails(t, err, transport.Moved)
		leaks(t, to, err)
		leaks(t, to, r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, nil))
	}
}
