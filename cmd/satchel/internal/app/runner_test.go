package app

import (
	"errors"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Attack: kill the sandbox between a command's end and the collection of what
// it changed. The answer must not promise that lost changes are tried again.
func TestNotSavedNote(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		stays bool
	}{
		"the sandbox ended": {fault.Wrap(space.ErrSandboxEnded, fault.Unavailable, "The sandbox ended. What the command had changed is lost."), false},
		"out of memory":     {fault.Wrap(space.ErrOutOfMemory, fault.Unavailable, "The sandbox ran out of memory. What the command had changed is lost."), false},
		"told already":      {fault.Wrap(errors.New("disk"), fault.Unavailable, "The changes could not be committed now. They stay in the sandbox."), false},
		"the space is full": {fault.New(fault.TooLarge, "The space is full."), true},
	} {
		t.Run(name, func(t *testing.T) {
			note := notSavedNote(c.err)
			if !strings.Contains(note, fault.PublicOf(c.err)) {
				t.Errorf("%q does not say why", note)
			}
			if got := strings.Contains(note, "It stays in the sandbox"); got != c.stays {
				t.Errorf("%q", note)
			}
		})
	}
}
