// Package sandboxtest checks pools of sandboxes and stands in for their parts:
// [Exercise] is the contract of a [satchel/sandbox.Pool] over any Runtime,
// [Fake] a Runtime of directories and host processes without any isolation,
// [Store] a space store in memory, and [Recorder] a Runtime that lets a test
// reach the sandboxes that a pool started. Only tests use it.
package sandboxtest
