package exports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"

	"satchel/internal/fault"
)

// mem0 reads an export of mem0: a list of memories, or an object with such a list in the field
// results or memories.
func (b *builder) mem0(text []byte) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := tooManyValues(text); err != nil {
		return err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		var object struct{ Results, Memories []json.RawMessage }
		if err := json.Unmarshal(text, &object); err != nil {
			return damaged(err)
		}
		if object.Results == nil && object.Memories == nil {
			return unknown()
		}
		list = append(object.Results, object.Memories...)
	}
	for _, raw := range list {
		var m struct{ ID, Memory, Content, Text, State string }
		err := json.Unmarshal(raw, &m)
		value := cmp.Or(m.Memory, m.Content, m.Text)
		switch {
		case err != nil || value == "":
			b.skip("a memory", wrongFields)
		case m.State != "" && m.State != "active":
			b.skip(firstWords(value), "The program no longer uses this memory.")
		default:
			if err := b.fact(m.ID, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// openMemoryFile is the name of the file with the memories in the archive of OpenMemory, which
// belongs to mem0.
const openMemoryFile = "memories.json"

// openMemory reads the archive of OpenMemory, or any archive of JSON files of mem0.
func (b *builder) openMemory(a *archive) error {
	read := 0
	for _, f := range a.files {
		if path.Ext(f.Name) != ".json" || hidden(f.Name) {
			continue // memories.jsonl.gz has the same memories
		}
		read++
		text, err := a.read(f, maxText)
		if err == nil {
			err = b.mem0(text)
		}
		if err != nil {
			return err
		}
	}
	if read == 0 {
		return fault.New(fault.Invalid, "The archive has no memories.json. Is it the export of another program?")
	}
	return nil
}
