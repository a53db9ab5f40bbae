package tools

import "encoding/json"

// schema returns a JSON Schema 2020-12 of a tool. The schemas are written by hand: closed,
// and without null among the types, which strict clients refuse. Upper limits are in the
// descriptions and not in "maximum", so that a validating client sends the call anyway. The
// tool lowers the number, and its answer says so.
func schema(s string) json.RawMessage { return json.RawMessage(s) }

const noArguments = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {},
  "additionalProperties": false
}`
