package apptest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// Delivery is a webhook that was made, and how it was answered.
type Delivery struct {
	ID, Event string // X-GitHub-Delivery and X-GitHub-Event
	URL       string
	Body      []byte
	Signature string // X-Hub-Signature-256; empty: unsigned
	// ContentType defaults to application/json.
	ContentType string
	Status      int // of the answer; 0: none yet, or not sent
}

// Sign returns the signature of a body with a secret.
func Sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Deliver sends a webhook as it is given, which need not be GitHub's: for replays,
// wrong signatures and what else somebody else may send. It returns the answer's
// status and body.
func (s *Server) Deliver(d Delivery) (status int, body string, err error) {
	r, err := http.NewRequest(http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, "", fmt.Errorf("apptest: %w", err)
	}
	if d.ContentType == "" {
		d.ContentType = "application/json"
	}
	for name, value := range map[string]string{
		"Content-Type": d.ContentType, "User-Agent": "GitHub-Hookshot/apptest", "X-GitHub-Event": d.Event, "X-GitHub-Delivery": d.ID,
		"X-GitHub-Hook-ID": "1", "X-Hub-Signature-256": d.Signature, "Accept": "*/*",
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := s.hooks.Do(r)
	if err != nil {
		return 0, "", fmt.Errorf("apptest: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, string(b), err
}

// Deliveries are those that were made, oldest first.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.world.deliveries)
}

// send makes a webhook of an app's and sends it, if the app has an address for
// them. The lock is held.
func (s *Server) send(w *world, a *app, event string, payload object) {
	h := a.manifest.Hook
	if h.URL == "" || h.Active != nil && !*h.Active {
		return
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	d := Delivery{ID: deliveryID(), Event: event, URL: h.URL, Body: body}
	if a.hookSecret != "" {
		d.Signature = Sign(a.hookSecret, body)
	}
	n := len(w.deliveries)
	w.deliveries = append(w.deliveries, d)
	if s.behaviour.NoHooks || !s.beginLocked() {
		return
	}
	go func() {
		defer s.end()
		status, _, _ := s.Deliver(d)
		s.with(func(w *world) { w.deliveries[n].Status = status })
	}()
}

func deliveryID() string {
	b := sha256.Sum256([]byte(fresh("")))
	x := hex.EncodeToString(b[:16])
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:])
}

func (s *Server) short(repos []*repository) []object {
	all := []object{}
	for _, r := range repos {
		all = append(all, object{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private})
	}
	return all
}

func (s *Server) installationEvent(w *world, action string, i *installation, by *account, repos []*repository) {
	if repos == nil {
		repos = w.repositories(i)
	}
	s.send(w, i.app, "installation", object{
		"action": action, "installation": s.installation(i), "repositories": s.short(repos), "requester": nil, "sender": s.simpleUser(by),
	})
}

func (s *Server) repositoriesEvent(w *world, action string, i *installation, added, removed []*repository) {
	s.send(w, i.app, "installation_repositories", object{
		"action": action, "installation": s.installation(i), "repository_selection": i.selection(), "repositories_added": s.short(added),
		"repositories_removed": s.short(removed), "requester": nil, "sender": s.simpleUser(i.account),
	})
}

// toApps sends an event about a repository to every app that reaches it and asked
// for such.
func (s *Server) toApps(w *world, event string, r *repository, payload object) {
	for _, i := range sortedInstallations(w) {
		if i.suspendedBy != nil || !slices.Contains(i.app.manifest.Events, event) || !slices.Contains(w.repositories(i), r) {
			continue
		}
		payload["installation"] = object{"id": i.id, "node_id": nodeID("Installation", i.id)}
		payload["repository"] = s.repository(r, "")
		payload["sender"] = s.simpleUser(r.owner)
		s.send(w, i.app, event, payload)
	}
}

func (s *Server) repositoryEvent(w *world, action string, r *repository, more object) {
	payload := object{"action": action}
	for k, v := range more {
		payload[k] = v
	}
	s.toApps(w, "repository", r, payload)
}

func (s *Server) pushEvent(w *world, r *repository, commit string) {
	s.toApps(w, "push", r, object{
		"ref": "refs/heads/main", "before": "0000000000000000000000000000000000000000", "after": commit, "created": false, "deleted": false,
		"forced": false, "base_ref": nil, "compare": s.URL + "/" + r.fullName() + "/compare", "commits": []object{}, "head_commit": nil,
		"pusher": object{"name": r.owner.login, "email": nil},
	})
}
