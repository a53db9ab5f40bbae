package review

import (
	"strings"
	"testing"

	"satchel/internal/testenv"
)

// Attack: each page compares large waiting files again, although they do not fit.
func TestAttackLongReviewsAreComparedOnce(t *testing.T) {
	l, compared := newLongPatches(), 0
	for range 3 {
		patch, cut, err := l.patch(t.Context(), patchKey{"s", "was", "is"}, &room{aloneLines, aloneBytes, 200}, func() (string, error) {
			compared++
			return strings.Repeat("+a line\n", 1<<20), nil
		})
		if err != nil || !cut || len(patch) == 0 || len(patch) > longPatchBegins {
			t.Errorf("%d bytes, cut: %t, %v", len(patch), cut, err)
		}
	}
	if compared != 1 {
		t.Errorf("it was compared %d times", compared)
	}
}

// Attack: a long comparison in one space blocks the pages of other spaces.
func TestAttackALongComparisonHoldsUpNoOtherSpace(t *testing.T) {
	l, left := newLongPatches(), &room{reviewLines, reviewBytes, 20}
	begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, _, err := l.patch(t.Context(), patchKey{"slow", "was", "is"}, left, func() (string, error) {
			close(begun)
			<-release
			return "+late\n", nil
		})
		ended <- err
	}()
	testenv.Receive(t, "the comparison begins", begun)
	patch, cut, err := l.patch(t.Context(), patchKey{"other", "was", "is"}, left, func() (string, error) { return "+EVIL\n", nil })
	if err != nil || cut || patch != "+EVIL\n" {
		t.Errorf("another space has %q, %t, %v", patch, cut, err)
	}
	close(release)
	if err := testenv.Receive(t, "the comparison ends", ended); err != nil {
		t.Error(err)
	}
}
