// Package tools holds what an AI client can ask of Satchel, as plain functions that
// know no protocol: the tools, and the prompts, resources and skills that a space offers.
//
// A [Registry] answers for one [Caller] at a time, who was authenticated elsewhere;
// it checks the caller's scopes and never reaches another space than the
// caller's. Reads answer from the object store and the index at head and start
// no sandbox; only bash does. Bad arguments are fault.Invalid, reported in the
// result in words that a model can act on, and change nothing.
package tools
