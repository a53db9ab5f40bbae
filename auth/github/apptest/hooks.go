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

// Delivery is a webhook and its answer.
type Delivery struct {
	ID, Event   string // X-GitHub-Delivery and X-GitHub-Event
	URL         string
	Body        []byte
	Signature   string // X-Hub-Signature-256; empty if the webhook is unsigned
	ContentType string // the default is application/json
	Status      int    // the answer's status; 0 if no answer came or the webhook was not sent
}

// Sign returns the signature of a body with a secret.
func Sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Deliver sends a webhook with the body and the signature that d has, and returns the status and
// body of the answer. The webhook need not be one of GitHub's.
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
		"X-Hub-Signature-256": d.Signature,
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

// Deliveries returns the webhooks that the server created, oldest first.
func (s *Server) Deliveries() []Delivery {
	return read(s, func(w *world) []Delivery { return slices.Clone(w.deliveries) })
}

// send records a webhook and sends it in the background, if the app has an address for
// webhooks. The caller must hold the lock.
func (s *Server) send(w *world, a *app, event string, payload object) {
	h := a.manifest.Hook
	if h.URL == "" || h.Active != nil && !*h.Active {
		return
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	d := Delivery{ID: fresh("delivery-"), Event: event, URL: h.URL, Body: body}
	if a.hookSecret != "" {
		d.Signature = Sign(a.hookSecret, body)
	}
	n := len(w.deliveries)
	w.deliveries = append(w.deliveries, d)
	if s.behaviour.NoHooks || !s.begin() {
		return
	}
	go func() {
		defer s.end()
		status, _, _ := s.Deliver(d)
		s.with(func(w *world) { w.deliveries[n].Status = status })
	}()
}

func short(repos []*repository) []object {
	all := []object{}
	for _, r := range repos {
		all = append(all, object{"id": r.id, "name": r.name, "full_name": r.fullName(), "private": r.private})
	}
	return all
}

func (s *Server) installationEvent(w *world, action string, i *installation) {
	s.send(w, i.app, "installation", object{
		"action": action, "installation": s.installationBody(i), "repositories": short(w.repositories(i)), "sender": s.simpleUser(i.account),
	})
}

// repositoriesEvent sends the event about repositories that were "added" or "removed".
func (s *Server) repositoriesEvent(w *world, action string, i *installation, repos []*repository) {
	if len(repos) == 0 {
		return
	}
	payload := object{
		"action": action, "installation": s.installationBody(i), "repository_selection": i.selection(), "repositories_added": []object{},
		"repositories_removed": []object{}, "sender": s.simpleUser(i.account),
	}
	payload["repositories_"+action] = short(repos)
	s.send(w, i.app, "installation_repositories", payload)
}

// toApps sends an event about a repository to every app that has access to the repository
// and subscribes to the event.
func (s *Server) toApps(w *world, event string, r *repository, payload object) {
	for _, i := range sorted(w.installations) {
		if !i.suspended.IsZero() || !slices.Contains(i.app.manifest.Events, event) || !slices.Contains(w.repositories(i), r) {
			continue
		}
		payload["installation"], payload["repository"], payload["sender"] = object{"id": i.id}, s.repositoryBody(r, ""), s.simpleUser(r.owner)
		s.send(w, i.app, event, payload)
	}
}
