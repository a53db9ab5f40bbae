// Package tools implements what an AI client can use: the tools, and the prompts, resources
// and skills of a space. It does not depend on a protocol.
//
// Call [New] first. [Registry.List] returns the tools, and [Registry.Call] runs one for a [Caller],
// which another package has authenticated. The [Registry] checks the caller's scopes and reaches
// only the caller's space and the library. Only the two bash tools start a sandbox. The tools that
// read use the newest commit in the object store, and the index. Wrong arguments are a
// fault.Invalid and change nothing. The result reports them in words that a model can act on.
package tools
