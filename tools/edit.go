package tools

import (
	"context"
	"encoding/json"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/textedit"
)

const nameEdit = "edit"

func (s *Registry) editTool() tool {
	return tool{
		Tool: Tool{
			Name: nameEdit, Title: "Edit a file", Description: describeEdit,
			InputSchema: schema(editInput), Scope: space.ScopeWrite, Destructive: true,
		},
		run: s.edit, example: `{"path":"a.md","edits":[{"old":"a","new":"b"}]}`,
		docs: "changes parts of a text file",
	}
}

const describeEdit = `Change parts of a text file. Each old must occur exactly once in the file, unless all is set. The edits apply in order; if one fails, nothing changes. Returns the diff and the new etag.`

const editInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "edits": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "old": {"type": "string", "description": "Exactly as in the file, without line numbers"},
          "new": {"type": "string"},
          "all": {"type": "boolean", "description": "Replace every occurrence"}
        },
        "required": ["old", "new"],
        "additionalProperties": false
      },
      "minItems": 1
    },
    "base_etag": {"type": "string", "description": "Fail if the file has another etag"}
  },
  "required": ["path", "edits"],
  "additionalProperties": false
}`

func (s *Registry) edit(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "path", "edits", "base_etag")
	in := service.EditFileInput{Space: c.Space(), Path: a.filePath("path"), Edits: a.edits("edits"), Base: a.etag("base_etag")}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	done, err := s.o.Service.EditFile(ctx, c.Actor, in)
	if fault.CodeOf(err) == fault.NotFound {
		v, verr := s.view(ctx, c)
		if verr != nil {
			return Result{}, verr
		}
		return Result{}, v.missing(ctx, in.Path, ref{path: in.Path})
	}
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

// edits returns a list of edits, each of which needs old and new.
func (a *arguments) edits(name string) []textedit.Edit {
	const example = `[{"old":"five minutes","new":"10 minutes"}]`
	var out []textedit.Edit
	a.objects(name, example, []string{"old", "new", "all"}, func(one *arguments) {
		for _, required := range []string{"old", "new"} {
			if _, ok := one.get(required); !ok {
				one.problem("The argument %q is missing: give it a string.", required)
			}
		}
		out = append(out, textedit.Edit{Old: one.text("old"), New: one.text("new"), All: one.flag("all")})
	})
	return out
}
