package tools

import "encoding/json"

// schema returns a JSON Schema 2020-12 of a tool. The schemas are written by hand. Except for
// those that ChatGPT requires, they allow neither unknown properties nor null, because strict
// clients refuse other schemas. Upper limits are in the descriptions and not in "maximum", so
// that a validating client still sends the call. The tool then lowers the number and says so.
func schema(s string) json.RawMessage { return json.RawMessage(s) }

const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`
