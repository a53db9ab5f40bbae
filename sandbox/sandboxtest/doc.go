// Package sandboxtest tests pools of sandboxes and replaces their parts: [Exercise] is
// the contract of a [satchel/sandbox.Pool] over any Runtime. [Fake] is a Runtime of
// directories and host processes without any isolation, [Store] is a space store in
// memory, and [Recorder] is a Runtime that gives a test access to the sandboxes that a
// pool started. Only tests use this package.
package sandboxtest
