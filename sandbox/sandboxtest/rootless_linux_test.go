package sandboxtest_test

import (
	"os"
	"testing"

	"satchel/sandbox/sandboxtest"
)

// TestAsOrdinaryUser runs the suites and the limits over gVisor again as a user
// who is not root: sandboxes have no cgroups then, and who owns what inside comes
// about in another way.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	sandboxtest.AsOrdinaryUser(t, []string{rootfsVariable + "=" + os.Getenv(rootfsVariable)}, "-test.run=^Test(Runtime|Pool|OutOfMemory|EachLimitIsTold|ProcessorHogsAreBounded|WhatCannotBeReadIsNamed)OverGVisor")
}
