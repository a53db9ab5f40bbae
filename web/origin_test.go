package web_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// origin stands for all remotes: every address that passes the checks leads to a bare
// repository on this machine.
type origin struct {
	*gitstore.Store
	client *transport.Client
	t      *testing.T
	dir    string

	mu      sync.Mutex
	err     error    // what each sync meets
	asked   []string // the addresses of all requests
	secrets []string // the credentials of all requests
}

// fails makes all syncs fail with an error; nil makes them work again.
func (o *origin) fails(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// calls returns how many requests reached a remote.
func (o *origin) calls() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked)
}

// at returns the repository at an address.
func (o *origin) at(e transport.Endpoint) (transport.Endpoint, error) {
	if err := o.client.Check(e); err != nil {
		return e, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked, o.secrets = append(o.asked, e.URL), append(o.secrets, e.Credential.Secret)
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.URL))
	dir := filepath.Join(o.dir, fmt.Sprintf("%x.git", h.Sum64()))
	if _, err := os.Stat(dir); err != nil {
		if out, err := exec.Command("git", "init", "--quiet", "--bare", "--initial-branch=main", dir).CombinedOutput(); err != nil {
			return e, fmt.Errorf("%w: %s", err, out)
		}
	}
	return transport.Endpoint{URL: dir, Trusted: true}, o.err
}

func (o *origin) Check(e transport.Endpoint) error { return o.client.Check(e) }

func (o *origin) List(ctx context.Context, e transport.Endpoint) (transport.Refs, error) {
	e, err := o.at(e)
	if err != nil {
		return transport.Refs{}, err
	}
	return o.client.List(ctx, e)
}

func (o *origin) Fetch(ctx context.Context, id space.SpaceID, e transport.Endpoint, branch string, progress func(string)) (gitstore.Fetched, error) {
	e, err := o.at(e)
	if err != nil {
		return gitstore.Fetched{}, err
	}
	return o.Store.Fetch(ctx, id, e, branch, progress)
}

func (o *origin) Push(ctx context.Context, id space.SpaceID, e transport.Endpoint, branch string, progress func(string)) (space.CommitID, error) {
	e, err := o.at(e)
	if err != nil {
		return "", err
	}
	return o.Store.Push(ctx, id, e, branch, progress)
}

// Credential implements space.Credentials, for repositories that GitHub connects.
func (o *origin) Credential(context.Context, space.Repository) (space.Credential, error) {
	return space.Credential{Secret: "ghs_test"}, nil
}

func (o *origin) Refused(space.Repository) {}

// connect gives a space a remote, to which everything is pushed.
func (w *world) connect(id space.SpaceID, url string) {
	w.t.Helper()
	_, err := w.service.SetRemote(w.t.Context(), service.Operator(), service.SetRemoteInput{Space: service.SpaceRef{ID: id}, URL: url, Token: "canary-token", WithSecrets: true})
	must(w.t, err)
	w.stands(id, space.RemotePushed)
}

// sync syncs a space with its remote. If err is not nil, the sync meets it.
func (w *world) sync(id space.SpaceID, err error) {
	w.t.Helper()
	w.origin.fails(err)
	_, serr := w.service.SyncRemote(w.t.Context(), service.Operator(), service.SyncRemoteInput{Space: service.SpaceRef{ID: id}})
	must(w.t, serr)
	w.origin.fails(nil)
	want := space.RemotePushed
	if err != nil {
		want = space.RemoteFailed
	}
	w.stands(id, want)
}

// stands waits until the remote of a space has a state.
func (w *world) stands(id space.SpaceID, want space.RemoteState) {
	w.t.Helper()
	testenv.WaitFor(w.t, "the remote is "+string(want), func() bool {
		st, err := w.service.Remotes.Status(w.t.Context(), id)
		must(w.t, err)
		return st.State == want
	})
}

// errDown is the error of a remote that fails.
var errDown = &transport.Error{Problem: transport.Server, Op: "list", Host: "git.test", Status: http.StatusBadGateway}
