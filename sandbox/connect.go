package sandbox

import (
	"context"
	"io"

	"satchel/sandbox/agent"
)

func connect(ctx context.Context, conn io.ReadWriteCloser, b agent.Boot) (Agent, error) {
	c, err := agent.Connect(ctx, conn, b)
	if err != nil {
		return nil, err
	}
	return c, nil
}
