//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
)

// client is an MCP client of one user.
type client struct{ c *mcpgoclient.Client }

func connect(ctx context.Context, url, token string) (*client, error) {
	c, err := mcpgoclient.NewStreamableHttpClient(url,
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var init mcpgo.InitializeRequest
	init.Params.ProtocolVersion = "2025-11-25"
	init.Params.ClientInfo = mcpgo.Implementation{Name: "satchel-bench", Version: "1"}
	if _, err := c.Initialize(ctx, init); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", url, err)
	}
	return &client{c}, nil
}

// call calls a tool and returns its text. If the tool reports an error, call returns an error too.
func (c *client) call(ctx context.Context, tool string, args map[string]any) (string, error) {
	var r mcpgo.CallToolRequest
	r.Params.Name = tool
	r.Params.Arguments = args
	res, err := c.c.CallTool(ctx, r)
	if err != nil {
		return "", err
	}
	text := ""
	for _, part := range res.Content {
		if t, ok := part.(mcpgo.TextContent); ok {
			text += t.Text
		}
	}
	if res.IsError {
		return text, fmt.Errorf("%s: %s", tool, text)
	}
	return text, nil
}

// bash runs a command, and returns an error if the tool reports one.
func (c *client) bash(ctx context.Context, command string) error {
	_, err := c.call(ctx, "bash", map[string]any{"command": command})
	return err
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

func (c *client) close() { _ = c.c.Close() }

// serveEcho runs the simplest mcp-go server: its only tool returns the text that it is given. It
// prints its address and serves until it is killed.
func serveEcho() error {
	s := mcpgoserver.NewMCPServer("echo", "1")
	s.AddTool(mcpgo.NewTool("read", mcpgo.WithString("text")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(r.GetString("text", "")), nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcpgoserver.NewStreamableHTTPServer(s))
	fmt.Fprintln(os.Stdout, l.Addr())
	return http.Serve(l, mux)
}
