package exports

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/facts"
	"satchel/internal/fault"
)

// maxItem limits the bytes of one conversation in JSON.
const maxItem = 64 << 20

const (
	// maxValues limits the values of one conversation or of one file of memories, because memory
	// holds up to 60 bytes for a value of 2 bytes.
	maxValues = 2 << 20
	// maxItems limits the conversations and other items of one import, because reading each
	// takes time.
	maxItems = 200_000
)

// tooManyValues returns an error for JSON with too many values. It estimates them by the commas
// and braces, including those inside strings.
func tooManyValues(raw []byte) error {
	if bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("{")) > maxValues {
		return fault.New(fault.TooLarge, "A part of the file has too many values. Split the source.")
	}
	return nil
}

// wrongFields says why a part of an export is skipped.
const wrongFields = "Its fields do not match this format."

// itemsFormat returns the format of the JSON of ChatGPT or Claude according to its first item, or
// "" for other JSON.
func itemsFormat(r io.Reader) (format string, err error) {
	done := errors.New("done")
	err = eachItem(r, func(raw json.RawMessage) error {
		var has struct{ Mapping json.RawMessage }
		switch {
		case json.Unmarshal(raw, &has) == nil && has.Mapping != nil:
			format = ChatGPT
		case claudeKind(raw) != "":
			format = Claude
		}
		return done
	})
	if errors.Is(err, done) {
		err = nil
	}
	return format, err
}

// eachItem calls f for each item of a JSON array. If the JSON is an object, eachItem calls f once
// for the object.
func eachItem(r io.Reader, f func(json.RawMessage) error) error {
	wrong := func(err error) error {
		if code := fault.CodeOf(err); code == fault.TooLarge {
			return err
		}
		return damaged(err)
	}
	part := &itemReader{r: r}
	in := bufio.NewReaderSize(part, 1<<16)
	first, err := skipBlanks(in)
	switch {
	case err != nil:
		return wrong(err)
	case first != '[' && first != '{':
		return fault.New(fault.Invalid, "The file is neither a list nor an object in JSON. Is it the export of another program?")
	}
	d := json.NewDecoder(in)
	if first == '[' {
		if _, err := d.Token(); err != nil {
			return wrong(err)
		}
	}
	for first == '{' || d.More() {
		var raw json.RawMessage
		part.read = 0
		if err := d.Decode(&raw); err != nil {
			return wrong(err)
		}
		if err := tooManyValues(raw); err != nil {
			return err
		}
		if err := f(raw); err != nil {
			return err
		}
		if first == '{' {
			break
		}
	}
	if first == '[' {
		if _, err := d.Token(); err != nil {
			return wrong(err)
		}
	}
	// Reading to the end verifies the file's checksum in the archive.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return wrong(err)
	}
	return nil
}

// skipBlanks skips the blanks before a JSON text. It returns the first character of the text,
// and leaves it in the reader.
func skipBlanks(in *bufio.Reader) (rune, error) {
	for {
		c, _, err := in.ReadRune()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n\ufeff", c) {
			return c, in.UnreadRune()
		}
	}
}

// itemReader limits what is read for one item, because memory holds the whole item.
type itemReader struct {
	r    io.Reader
	read int
}

func (r *itemReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.read += n; r.read > maxItem {
		return n, fault.New(fault.TooLarge, "A conversation in the file is larger than the %s that it may have.", bytesize.Text(maxItem))
	}
	return n, err
}

// assistant reads the archive of ChatGPT or Claude.
func (b *builder) assistant(a *archive) error {
	read := 0
	for _, f := range a.files {
		switch name := base(f.Name); {
		case isConversations(name), b.Format == Claude && isClaudeFile(f.Name):
		case isAccount(name) || hidden(f.Name):
			continue
		default:
			b.skip(f.Name, "Only conversations, projects and memories are imported.")
			continue
		}
		r, err := a.reader(f)
		if err != nil {
			return err
		}
		read++
		err = eachItem(r, b.item)
		r.Close()
		if err != nil {
			return err
		}
	}
	if read == 0 {
		return fault.New(fault.Invalid, "The archive has no conversations.json. Is it the export of another program?")
	}
	return nil
}

// isConversations reports whether a file has conversations. Large exports have several such
// files, such as conversations-000.json.
func isConversations(name string) bool {
	n, ok := strings.CutPrefix(name, "conversations-")
	n, json := strings.CutSuffix(n, ".json")
	_, err := strconv.ParseUint(n, 10, 32)
	return name == "conversations.json" || ok && json && err == nil
}

// isAccount reports whether a file is only about the account or the export.
func isAccount(name string) bool {
	switch name {
	case "users.json", "user.json", "user_settings.json", "login_history.json", "export_manifest.json":
		return true
	}
	return isManifest(name)
}

// isManifest reports whether a file lists the archives of an export of Claude.
func isManifest(name string) bool {
	return strings.HasPrefix(name, "manifest") && strings.HasSuffix(name, ".json")
}

// message is one message of a conversation.
type message struct{ who, text string }

// talk is a conversation of any assistant.
type talk struct {
	id, name         string
	created, updated time.Time
	messages         []message
}

// item adds an item of the export of ChatGPT or Claude.
func (b *builder) item(raw json.RawMessage) error {
	if b.items++; b.items > maxItems {
		return fault.New(fault.TooLarge, "The source has more than the %d conversations that one import may have. Split the source.", maxItems)
	}
	if b.Format == Claude {
		return b.claudeItem(raw)
	}
	t, err := chatGPTTalk(raw)
	return b.conversation(t, err)
}

// conversation adds the page of a conversation, or skips it and says why.
func (b *builder) conversation(t talk, err error) error {
	switch {
	case err != nil:
		b.skip(cmp.Or(title(t.name, ""), "a conversation"), wrongFields)
		return nil
	case t.id == "":
		b.skip(title(t.name, "a conversation"), "It has no ID.")
		return nil
	case len(t.messages) == 0:
		b.skip(title(t.name, "a conversation"), "It has no messages.")
		return nil
	}
	return b.talk(t)
}

// talk adds the page of a conversation. The path has no title, because people rename
// conversations.
func (b *builder) talk(t talk) error {
	name := title(t.name, "Untitled conversation")
	assistant := map[string]string{ChatGPT: "ChatGPT", Claude: "Claude"}[b.Format]
	var body strings.Builder
	fmt.Fprintf(&body, "# %s\n", name)
	for i, m := range t.messages {
		who := m.who
		if who != "User" {
			who = assistant
		}
		if body.Len()+len(m.text)+1000 > b.limits.Page {
			fmt.Fprintf(&body, "\nThe import left out the last %d messages, because the page would be too large.\n", len(t.messages)-i)
			b.skip(name, fmt.Sprintf("The last %d messages are left out, because the page would be too large.", len(t.messages)-i))
			break
		}
		fmt.Fprintf(&body, "\n## %s\n\n%s\n", who, m.text)
	}
	fields := []facts.Field{{Key: "title", Value: name}, {Key: "type", Value: "conversation"}, {Key: "source", Value: b.Format}, {Key: "source_id", Value: title(t.id, "")}}
	folder, day := "undated", ""
	if !t.created.IsZero() {
		folder, day = t.created.Format("2006"), t.created.Format(time.DateOnly)+"-"
		fields = append(fields, facts.Field{Key: "created", Value: facts.Raw(t.created.Format(time.DateOnly))})
	}
	if !t.updated.IsZero() {
		fields = append(fields, facts.Field{Key: "updated", Value: facts.Raw(t.updated.Format(time.DateOnly))})
	}
	p := "knowledge/conversations/" + b.Format + "/" + folder + "/" + day + short(t.id, 12) + ".md"
	return b.page(name, p, generated(body.String(), fields...))
}

func (t *talk) add(user bool, texts []string) {
	var kept []string
	for _, text := range texts {
		if text = clean(text); text != "" {
			kept = append(kept, text)
		}
	}
	if len(kept) == 0 {
		return
	}
	who := "Assistant"
	if user {
		who = "User"
	}
	t.messages = append(t.messages, message{who, strings.Join(kept, "\n\n")})
}

// unixTime reads seconds since 1970, which may have a fraction. It returns the zero time for
// other values.
func unixTime(raw json.RawMessage) time.Time {
	f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || math.IsNaN(f) || f <= 0 || f > 4102444800 { // the year 2100
		return time.Time{}
	}
	return time.Unix(int64(f), 0).UTC()
}

func isoTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		return time.Time{}
	}
	return t.UTC()
}
