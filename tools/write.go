package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

const nameWrite = "write"

func (s *Registry) writeTool() tool {
	return tool{
		Tool: Tool{
			Name: nameWrite, Title: "Write a file", Description: describeWrite,
			InputSchema: schema(writeInput), Scope: space.ScopeWrite, Destructive: true, Idempotent: true,
		},
		run: s.write, example: `{"path":"knowledge/tea.md","content":"# Tea\n"}`,
		docs: "creates or replaces a text file, even where no sandbox can start",
	}
}

const describeWrite = `Save a text file: a note longer than a fact as knowledge/<topic>.md, what every AI should know in resources/, with title and description in front matter. To replace a file, pass the etag that {read} returned; to change a part of one, use {edit}.`

const writeInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "content": {"type": "string", "description": "The whole file"},
    "base_etag": {"type": "string", "description": "The version to replace; none for a new file"}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

func (s *Registry) write(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "path", "content", "base_etag")
	in := service.WriteFileInput{Space: c.Space(), Path: a.filePath("path"), Content: a.text("content"), Base: a.etag("base_etag")}
	if _, ok := a.get("content"); !ok {
		a.problem("The argument \"content\" is missing: give it the whole text of the file.")
	}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	done, err := s.o.Service.WriteFile(ctx, c.Actor, in)
	if err != nil {
		return Result{}, err
	}
	r := s.changedResult(done)
	s.addUnlisted(ctx, c, []space.Path{done.Path}, &r)
	if done.Commit != "" {
		s.remind(c, []space.Path{done.Path}, &r)
	}
	return r, nil
}

// filePath returns the argument that names a file in the space.
func (a *arguments) filePath(name string) string {
	asked := a.required(name, `"knowledge/deploy.md"`)
	if strings.TrimSpace(asked) == "" {
		return ""
	}
	r, err := parseRef(asked)
	switch {
	case err != nil:
		a.problem("%s", fault.PublicOf(err))
	case r.library:
		return r.String() // the service refuses a path of the library
	case r.dir:
		a.problem("The path %q names a directory. Add the name of a file.", clip(asked, 100))
	}
	return r.path
}

// etag returns an etag without the quotes that HTTP puts around it.
func (a *arguments) etag(name string) space.BlobID {
	return space.BlobID(strings.Trim(strings.TrimSpace(a.text(name)), `"`))
}

// changedResult returns the answer about a changed file.
func (s *Registry) changedResult(f service.ChangedFile) Result {
	var b strings.Builder
	meta := map[string]any{"path": string(f.Path), "etag": string(f.Etag)}
	name := string(f.Path)
	// Quote a name that has characters to escape, such as invisible ones.
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
		name = quoted
	}
	switch {
	case f.Commit == "":
		fmt.Fprintf(&b, "%s already has this content. Etag %s.\n", name, f.Etag)
	case f.Created:
		fmt.Fprintf(&b, "Created %s. Etag %s, commit %s.\n", name, f.Etag, f.Commit.Short())
	default:
		fmt.Fprintf(&b, "Changed %s: %s added, %d removed. Etag %s, commit %s.\n", name, plural(f.Diff.Added, "line", "lines"), f.Diff.Removed, f.Etag, f.Commit.Short())
	}
	if f.Commit != "" {
		meta["commit"], meta["created"] = string(f.Commit), f.Created
	}
	for _, l := range f.Diff.Lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	if f.Diff.Left > 0 {
		fmt.Fprintf(&b, "[%s of the diff not shown]\n", plural(f.Diff.Left, "line", "lines"))
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "[WARNING: %s: %s]\n", quotePath(w.Path), clip(w.Why, maxReasonChars))
	}
	notFactsText(&b, s.o.Prefix+nameRemember, f.NotFacts)
	if len(f.NotFacts) > 0 {
		meta["not_facts"] = notFactsMeta(f.NotFacts)
	}
	return Result{Content: []Content{{Text: strings.TrimSuffix(b.String(), "\n")}}, Meta: meta}
}
