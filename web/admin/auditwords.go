package admin

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"satchel/internal/service"
	"satchel/web"
)

// event describes an entry of the audit log in a sentence.
type event struct {
	service.AuditEntry
	words *auditWords
}

// auditWords has the words of all sentences.
type auditWords struct {
	method func(string) string // the name of a way to sign in
	forms  map[string][]string // see sentences
	parts  *regexp.Regexp      // matches the parts in brackets and the keys of a form
}

func newAuditWords(method func(string) string) *auditWords {
	return &auditWords{method, sentences(), regexp.MustCompile(`\[[^\]]*\]|\{[a-z]+\}`)}
}

// phrase is a part of the sentence about an entry.
type phrase struct {
	Text string
	Name bool // a person or a client chose the text
}

// sentences returns the forms of sentences by action. A key in braces stands for a detail of the
// entry, such as {who} for the one who acts, and {about} for the subject. A part in brackets is
// left out if one of its keys has no text. An entry uses the first form whose keys outside of
// brackets all have a text.
func sentences() map[string][]string {
	return map[string][]string{
		"session.start": {"{who} signed in[ with {method}]"},
		"session.end":   {"{who} ended a session of {other}", "{who} signed out"},
		"link.create":   {"{who} made a sign-in link for {other}", "{who} asked for a sign-in link by mail"},
		"link.use":      {"{who} used a sign-in link"},
		"identity.link": {"{who} added a way to sign in[: {issuer}]"}, "identity.unlink": {"{who} removed a way to sign in[: {issuer}]"},
		"passkey.add": {"{who} added the passkey {name}", "{who} added a passkey"}, "passkey.remove": {"{who} removed a passkey[ of {other}]"},

		"user.create":  {"{self} joined this server[ with {invite}]", "{who} added {about}[ as {admin}]"},
		"user.undo":    {"{who} removed the account of {about}, which was not complete"},
		"user.remove":  {"{who} removed {name} from this server"},
		"user.admin":   {"{who} made {name} {admin}", "{who} removed {name} as an admin"},
		"user.email":   {"{who} set the email address of {name} to {email}", "{who} removed the email address of {name}"},
		"user.suspend": {"{who} suspended {name}, who is no longer on the allow list"},
		"user.restore": {"{who} let {name} in again"},

		"invitation.create": {"{who} invited {person} to {space}[ as {role}][ and as {admin}]", "{who} invited {person} to this server[ as {admin}]"},
		"invitation.accept": {"{who} accepted the invite[ of {by}]"},
		"invitation.revoke": {"{who} revoked the invite for {person}"},
		"member.set":        {"{who} changed the role of {other} in {about} to {now}", "{who} added {other} to {about}[ as {role}]", "{who} joined {about}[ as {role}]"},
		"member.remove":     {"{who} removed {other} from {about}", "{who} left {about}"},

		"grant.consent":   {"{who} let {client} use {space}"},
		"grant.create":    {"{client} connected to {space} for {who}"},
		"grant.widen":     {"{client} got more rights in {space} for {who}"},
		"grant.revoke":    {"{who} disconnected {client}[ of {other}]"},
		"key.create":      {"{who} created the key {named}[ of {other}][ for the space {space}]", "{who} created a key[ of {other}][ for the space {space}]"},
		"key.revoke":      {"{who} revoked the key {named}[ of {other}]", "{who} revoked a key[ of {other}]"},
		"code.reuse":      {"{client} of {who} was disconnected, because its sign-in code was used twice"},
		"refresh.reuse":   {"{client} of {who} was disconnected, because its refresh token was used twice"},
		"client.register": {"{client} registered itself as a client"},
		"client.create":   {"{who} added the client {client}"},
		"client.delete":   {"{who} deleted the client {client}"},
		"settings.set":    {"{who} changed who can invite new people[: {inviters}]"},

		"space.create":          {"{who} created the space {about} of {owner}", "{who} created the space {about}"},
		"space.rename":          {"{who} renamed the space {was}[ to {name}]", "{who} renamed the space {about}"},
		"space.delete":          {"{who} deleted the space {name}"},
		"space.give":            {"{who} transferred the space {name} to {to}"},
		"space.import":          {"{who} imported {files} into {about}[ from {from}]"},
		"space.revert":          {"{who} undid changes[ of {client}] in {about}"},
		"space.repair":          {"{who} repaired {about}"},
		"space.purge":           {"{who} removed a key from the history of {about}"},
		"space.remote.set":      {"{who} set the Git remote of {about}[ to {url}]"},
		"space.remote.remove":   {"{who} removed the Git remote of {about}"},
		"space.secret.allow":    {"{who} allowed a held-back file in {about}"},
		"space.secret.disallow": {"{who} no longer allows a held-back file in {about}"},
		"review.keep":           {"{who} kept a change of {path} in {about}"},
		"review.undo":           {"{who} undid a change of {path} in {about}"},

		"source.publish":       {"{who} published the source {about}[ from {space}]"},
		"source.unpublish":     {"{who} unpublished the source {about}"},
		"source.add":           {"{who} added the source {about}"},
		"source.change":        {"{who} changed the source {about}"},
		"source.remove":        {"{who} removed the source {about}"},
		"source.sync":          {"{who} updated the source {about}"},
		"source.cancel":        {"{who} stopped an update of the source {about}"},
		"source.upload":        {"{who} uploaded {name} to the source {subject}"},
		"source.upload.remove": {"{who} removed files from the source {about}"},

		"github.app.create": {"{who} set up the GitHub App {name}"},
		"github.app.remove": {"{who} removed the GitHub App {name}"},
		"github.ask":        {"{who} asked for access to a repository for {about}"},
		"github.link":       {"{who} connected {about} to the repository {name}"},
		"github.unlink":     {"{who} disconnected {about} from the repository {name}"},
		"github.state":      {"{who} reported that the repository {name} of {about} is now {to}"},
	}
}

// sentence says what happened. An action without a sentence is shown as it is.
func (e event) sentence() []phrase {
	forms := append(slices.Clone(e.words.forms[e.Action]), "{who}: "+strings.ReplaceAll(e.Action, ".", " ")+"[ {about}]")
	for _, form := range forms {
		if out, ok := e.filled(form); ok {
			if !out[0].Name {
				out[0].Text = strings.ToUpper(out[0].Text[:1]) + out[0].Text[1:]
			}
			return out
		}
	}
	return nil // even the last form fails if the name of the person has no visible text
}

// filled replaces the keys of a sentence. ok is false if a key outside of brackets has no text.
func (e event) filled(form string) (out []phrase, ok bool) {
	add := func(p phrase) {
		if n := len(out); p.Text == "" {
		} else if n > 0 && !p.Name && !out[n-1].Name {
			out[n-1].Text += p.Text
		} else {
			out = append(out, p)
		}
	}
	at := 0
	for _, m := range e.words.parts.FindAllStringIndex(form, -1) {
		add(phrase{Text: form[at:m[0]]})
		part := form[m[0]:m[1]]
		at = m[1]
		if part[0] == '[' {
			if inner, ok := e.filled(part[1 : len(part)-1]); ok {
				for _, p := range inner {
					add(p)
				}
			}
			continue
		}
		p := e.value(part[1 : len(part)-1])
		if p.Text == "" {
			return nil, false
		}
		add(p)
	}
	add(phrase{Text: form[at:]})
	return out, true
}

// value returns the text for a key of a sentence.
func (e event) value(key string) phrase {
	name := func(text string) phrase { return phrase{web.Shorten(text, 80), true} }
	switch key {
	case "who":
		return e.who()
	case "self": // the person, if the entry is about the same person
		if who := e.who(); who.Text == e.About {
			return who
		}
		return phrase{}
	case "other": // a person other than the one who acts
		other := e.detail("user")
		if other == "" && (strings.HasPrefix(e.Action, "link.") || strings.HasPrefix(e.Action, "passkey.")) {
			other = e.named()
		}
		if other == e.who().Text {
			return phrase{}
		}
		return name(other)
	case "owner": // the owner of the space, if it is not the person who acts
		if owner := e.detail("owner"); owner != e.who().Text {
			return name(owner)
		}
		return phrase{}
	case "person": // who is invited
		return phrase{cmp.Or(web.Shorten(e.named(), 80), "a person"), e.named() != ""}
	case "about":
		return name(e.ownName(e.About))
	case "named": // the name of the subject, if it has one
		return name(e.named())
	case "subject":
		return name(e.Subject)
	case "client": // the name of a client, which may have none
		text := cmp.Or(e.detail("name"), e.named())
		if e.Action == "space.revert" {
			client, _ := e.Detail["client"].(string) // a name, never an ID
			return name(client)
		}
		return phrase{cmp.Or(web.Shorten(text, 80), "a client without a name"), text != ""}
	case "role":
		return phrase{Text: withArticle(e.detail("role"))}
	case "now": // the new role, if the person had another role
		if e.detail("was") == "" {
			return phrase{}
		}
		return phrase{Text: e.detail("role")}
	case "admin":
		if yes, _ := e.Detail["admin"].(bool); yes {
			return phrase{Text: "an admin"}
		}
		return phrase{}
	case "invite":
		if e.Via == "invitation" {
			return phrase{Text: "an invite"}
		}
		return phrase{}
	case "method":
		return phrase{Text: e.words.method(e.detail("method"))}
	case "inviters":
		switch e.detail("value") {
		case string(service.Yes):
			return phrase{Text: "owners of spaces and admins"}
		case string(service.No):
			return phrase{Text: "only admins"}
		}
		return phrase{Text: "as satchel.yaml says"}
	case "files":
		n, _ := e.Detail["files"].(float64)
		return phrase{Text: web.Plural(int(n), "1 file", "%d files")}
	case "space", "was":
		return name(e.ownName(e.detail(key)))
	}
	return name(e.detail(key))
}

// who returns who acted: a person, the operator, GitHub or the server.
func (e event) who() phrase {
	text := e.User
	switch {
	case text != "" || e.Via == "command line":
	case e.Action == "user.create": // the new user joined
		text = e.About
	case e.Via == "invitation":
		text = e.detail("user")
	}
	if text != "" {
		return phrase{web.Shorten(text, 80), true}
	}
	switch e.Via {
	case "command line":
		return phrase{Text: "The operator"}
	case "github":
		return phrase{Text: "GitHub"}
	}
	return phrase{Text: "The server"}
}

// detail returns a detail as text. It replaces an ID with the name, if the name is known.
func (e event) detail(key string) string {
	switch value := e.Detail[key].(type) {
	case nil:
		return ""
	case string:
		return cmp.Or(e.Names[value], value)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case []any:
		return strings.TrimSuffix(fmt.Sprintln(value...), "\n")
	default:
		return fmt.Sprint(value)
	}
}

// named returns the name of the subject, or "" if only its ID is known.
func (e event) named() string {
	if e.About == e.Subject {
		return ""
	}
	return e.About
}

// ownName returns the name of a space. It leaves out the owner if the owner acted, or if the
// sentence names the owner anyway.
func (e event) ownName(name string) string {
	owner, short, ok := strings.Cut(name, "/")
	if ok && (owner == e.User || e.Action == "key.create" && owner == e.detail("user") || owner == e.detail("owner")) {
		return short
	}
	return name
}

func withArticle(role string) string {
	switch {
	case role == "":
		return ""
	case strings.ContainsRune("aeiou", rune(role[0])):
		return "an " + role
	}
	return "a " + role
}

// way says how the actor reached the server: over which interface or from which browser, and
// from which network address.
func (e event) way() string {
	text := map[string]string{
		"web": "in the browser", "consent": "in the browser", "command line": "on the command line", "client": "by the client", "registration": "by the client",
		"configuration": "from satchel.yaml", "first run": "at the first start", "mail": "by mail", "sign-in": "at the first sign-in", "invitation": "with an invite",
		"github": "from GitHub",
	}[e.Via]
	if text == "" {
		text = web.Shorten(e.Via, 40)
	}
	if agent := e.detail("agent"); agent != "" {
		text = web.DeviceOf(agent)
	}
	if address := e.detail("address"); address != "" {
		text += " from " + web.Shorten(address, 64)
	}
	return text
}
