package testenv

import (
	"os"
	"testing"
)

// Soak reports whether the long suites run in full: "just soak" sets
// SATCHEL_TEST_SOAK=1. Otherwise they run a part of their cases, with a fixed seed.
func Soak() bool { return os.Getenv("SATCHEL_TEST_SOAK") != "" }

// OnlySoak skips a test that takes minutes, unless the long suites run in full (see Soak).
// It skips the test in CI too.
func OnlySoak(t testing.TB) {
	t.Helper()
	if !Soak() {
		t.Skip(`this takes minutes: "just soak" runs it`)
	}
}

// Stride returns n, or 1 when the long suites run in full (see Soak). A suite that tries the
// steps of a sequence advances by the stride, so a short run tries only each nth step.
func Stride(n int) int {
	if Soak() {
		return 1
	}
	return n
}
