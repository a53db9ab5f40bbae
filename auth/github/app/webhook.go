package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// event holds the fields of an event's body that the server uses.
type event struct {
	Action       string     `json:"action"`
	Ref          string     `json:"ref"` // the ref of a push
	Installation numbered   `json:"installation"`
	Repository   named      `json:"repository"`
	Sender       numbered   `json:"sender"`
	Added        []numbered `json:"repositories_added"`
	Removed      []numbered `json:"repositories_removed"`
}

type numbered struct {
	ID int64 `json:"id"`
}

type named struct {
	numbered
	FullName      string `json:"full_name"`
	DefaultBranch string `json:"default_branch"`
}

// Webhook returns the handler for GitHub's events at PathWebhook. It accepts only signed
// events, and each event once. An event is never trusted and never connects anything: it
// causes checks and syncs, and each of them asks GitHub again.
func (c *Client) Webhook() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		status, text := c.webhook(w, r)
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		if status >= 300 {
			http.Error(w, text, status)
			return
		}
		w.WriteHeader(status)
	})
}

func (c *Client) webhook(w http.ResponseWriter, r *http.Request) (status int, text string) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, "Use POST."
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return http.StatusUnsupportedMediaType, "The Content-Type must be application/json."
	}
	// Do not read an unsigned body, because anybody can send one.
	if !signatureForm().MatchString(r.Header.Get("X-Hub-Signature-256")) {
		return http.StatusUnauthorized, "The event is not signed."
	}
	if wait, ok := c.o.Limit(r, false); !ok {
		return tooMany(w, wait)
	}
	a, ok, err := c.o.Store.GitHubApp(r.Context())
	switch {
	case err != nil:
		c.log.Error("look up the GitHub App for a webhook", "error", err)
		return http.StatusInternalServerError, "Something went wrong in the server."
	case !ok || a.URL != c.o.URL || a.Secrets.Webhook == "":
		// Anybody could sign with an empty secret.
		return c.unproven(w, r, http.StatusNotFound, "This server expects no events.")
	}
	e, status, text := c.event(w, r, a.Secrets.Webhook)
	if status != 0 {
		return status, text
	}
	first, err := c.o.Store.SeenDelivery(r.Context(), r.Header.Get("X-GitHub-Delivery"))
	switch {
	case fault.CodeOf(err) == fault.Invalid:
		return http.StatusBadRequest, fault.PublicOf(err)
	case err != nil:
		c.log.Error("remember a webhook", "error", err)
		return http.StatusInternalServerError, "Something went wrong in the server."
	case !first:
		return http.StatusOK, ""
	}
	if err := c.handle(r.Context(), r.Header.Get("X-GitHub-Event"), e); err != nil {
		c.log.Error("handle a webhook; the next check of all connections covers it", "error", err)
	}
	return http.StatusAccepted, ""
}

// event reads an event that is signed with the secret. It does not keep the body. If it
// refuses the event, status and text are the answer. Otherwise status is 0.
func (c *Client) event(w http.ResponseWriter, r *http.Request, secret string) (e event, status int, text string) {
	size := r.ContentLength
	switch {
	case size > c.o.MaxWebhook:
		return e, http.StatusRequestEntityTooLarge, "The event is too large."
	case size < 0:
		size = c.o.MaxWebhook
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.o.WebhookTimeout)
	defer cancel()
	leave, ok := c.bodies.enter(ctx, c.o.Address(r), size)
	if !ok {
		if n := c.crowded.count(c.o.Now()); n > 0 {
			c.log.Warn("webhooks were refused because too many arrived at once; the next check of all connections covers them", "since the last such line", n)
		}
		w.Header().Set("Retry-After", "10")
		return e, http.StatusServiceUnavailable, "Too many events are arriving. Try again later."
	}
	defer leave()
	body, err := readBody(r, size)
	switch {
	case errors.Is(err, errLargeBody):
		status, text = c.unproven(w, r, http.StatusRequestEntityTooLarge, "The event is too large.")
		return e, status, text
	case err != nil:
		status, text = c.unproven(w, r, http.StatusBadRequest, "The event could not be read.")
		return e, status, text
	case !signed(body, r.Header.Get("X-Hub-Signature-256"), secret):
		if n := c.unsigned.count(c.o.Now()); n > 0 {
			c.log.Warn("a webhook had an invalid signature", "since the last such line", n, "delivery", github.Redact(r.Header.Get("X-GitHub-Delivery")))
		}
		status, text = c.unproven(w, r, http.StatusUnauthorized, "The event is not signed with this App's secret.")
		return e, status, text
	}
	if json.Unmarshal(body, &e) != nil {
		return e, http.StatusBadRequest, "The event is not valid JSON."
	}
	return e, 0, ""
}

// unproven counts a request that has not been proved to come from GitHub. It returns the given
// answer, or status 429 if the sender has sent too many such requests.
func (c *Client) unproven(w http.ResponseWriter, r *http.Request, status int, text string) (int, string) {
	if wait, ok := c.o.Limit(r, true); !ok {
		return tooMany(w, wait)
	}
	return status, text
}

func tooMany(w http.ResponseWriter, wait time.Duration) (int, string) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(wait.Seconds()+1))))
	return http.StatusTooManyRequests, "Too many events without a valid signature. Try again later."
}

// signatureForm matches the value of GitHub's signature header.
var signatureForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^sha256=[0-9a-fA-F]{64}$`)
})

// refusedEvery is the time between two log entries about refused events, which anybody can
// send.
const refusedEvery = time.Minute

// refused counts refused events between two log entries.
type refused struct {
	mu   sync.Mutex
	n    int
	last time.Time
}

// count adds one event. It returns the count if it is time to log it, and 0 otherwise.
func (u *refused) count(now time.Time) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	if !u.last.IsZero() && now.Sub(u.last) < refusedEvery {
		return 0
	}
	n := u.n
	u.n, u.last = 0, now
	return n
}

// signed reports whether the body was signed with the secret.
func signed(body []byte, signature, secret string) bool {
	text, ok := strings.CutPrefix(signature, "sha256=")
	got, err := hex.DecodeString(text)
	if !ok || err != nil || secret == "" {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(got, mac.Sum(nil))
}

// handle calls OnBranch and OnPush for a push. For any other event, it queues checks of the spaces
// that the event concerns.
func (c *Client) handle(ctx context.Context, name string, e event) error {
	if branch, ok := strings.CutPrefix(e.Ref, "refs/heads/"); ok && name == "push" && goodName(e.Repository.FullName) {
		c.o.OnBranch(c.o.URL+"/"+e.Repository.FullName, branch, branch == e.Repository.DefaultBranch)
	}
	links, err := c.o.Store.RepositoryLinks(ctx)
	if err != nil {
		return err
	}
	for _, l := range links {
		switch {
		case !concerns(name, e, l):
		case name == "push":
			if l.State == auth.LinkConnected {
				c.o.OnPush(l.Space)
			}
		default:
			c.tokens.dropLink(l)
			c.hints.add(l.Space)
		}
	}
	return nil
}

func concerns(name string, e event, l auth.RepositoryLink) bool {
	in := func(list []numbered) bool {
		for _, n := range list {
			if n.ID == l.Repository {
				return true
			}
		}
		return false
	}
	switch name {
	case "push":
		return e.Repository.ID == l.Repository && e.Installation.ID == l.Installation
	case "installation", "installation_target":
		return e.Installation.ID == l.Installation
	case "installation_repositories":
		return e.Installation.ID == l.Installation && (in(e.Added) || in(e.Removed))
	case "repository":
		return e.Repository.ID == l.Repository
	case "github_app_authorization":
		// A person who revokes the App's authorization may want to end the connection.
		return e.Sender.ID == l.GitHubUser
	}
	return false
}

// hints is a queue of spaces whose connection must be checked, without duplicates.
type hints struct {
	mu   sync.Mutex
	set  map[space.SpaceID]bool
	todo chan space.SpaceID
}

func (h *hints) start(size int) {
	h.set, h.todo = map[space.SpaceID]bool{}, make(chan space.SpaceID, size)
}

// add adds a space without blocking. If the queue is full, the space waits for RecheckAll.
func (h *hints) add(id space.SpaceID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.set[id] {
		return
	}
	select {
	case h.todo <- id:
		h.set[id] = true
	default:
	}
}

// taken records that the check of a space begins, so that a later hint causes another check.
func (h *hints) taken(id space.SpaceID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.set, id)
}

// followHints checks the queued spaces one at a time, until ctx ends.
func (c *Client) followHints(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-c.hints.todo:
			c.hints.taken(id)
			if _, err := c.Recheck(ctx, id); err != nil && fault.CodeOf(err) != fault.NotFound && ctx.Err() == nil {
				c.log.Warn("the space of a webhook could not be checked; the next check of all spaces retries it", "space", id, "error", err)
			}
		}
	}
}
