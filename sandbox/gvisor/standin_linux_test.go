package gvisor_test

import (
	"context"
	"fmt"
	"os"

	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
	"satchel/sandbox/sandboxtest"
)

const standInCommand = sandboxtest.StandInCommand

// serverRunDir names the run directory in the environment of a test binary that
// is to be a server: it starts a sandbox, says so and waits to be killed.
const serverRunDir = "SATCHEL_TEST_SERVER_RUN_DIR"

func serve(dir string) int {
	opt := gvisor.Options{RunDir: dir + "/run", Args: []string{agent.Exe, standInCommand}}
	if raceEnabled {
		opt.Exe = os.Getenv(staticBinary)
	}
	r, err := gvisor.New(opt)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := r.Start(context.Background(), space.SandboxSpec{
		ID: oci.NewID(), Checkout: &space.Checkout{Dir: dir + "/checkout"},
		Limits: space.Limits{Memory: 1 << 30},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	<-s.Done()
	fmt.Println("ended:", s.Err())
	return 0
}
