// Package programstest builds the sandbox programs for tests: call Build.
package programstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"satchel/sandbox/programs"
)

// Variable is the environment variable with a directory of programs, for tests that
// cannot build them.
const Variable = "SATCHEL_TEST_PROGRAMS"

// WithSelf returns the programs of Build, with the test's own binary as the agent. The
// test's TestMain then decides what process 1 does.
func WithSelf() (programs.Programs, error) {
	p, err := Build()
	if err != nil {
		return p, err
	}
	p.Agent, err = os.Executable()
	return p, err
}

// Build returns the programs that scripts/programs builds from the checkout's code.
var Build = sync.OnceValues(func() (programs.Programs, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return programs.In(dir), nil
	}
	root, err := os.Getwd()
	if err != nil {
		return programs.Programs{}, err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(root)
		if parent == root {
			return programs.Programs{}, errors.New("the test does not run in a checkout, and " + Variable + " is not set")
		}
		root = parent
	}
	build := exec.Command(filepath.Join(root, "scripts", "programs"))
	build.Env = append(os.Environ(), "GOFLAGS=", "GOARCH=") // without the settings of a race test
	if out, err := build.CombinedOutput(); err != nil {
		return programs.Programs{}, fmt.Errorf("building the sandbox programs: %w\n%s", err, out)
	}
	return programs.In(filepath.Join(root, "bin", "sandbox")), nil
})
