//go:build !conformance

package mcp

import (
	"github.com/mark3labs/mcp-go/server"
)

// fixtures are the tools, resources and prompts that the protocol's
// conformance suite calls. Only a build with the tag "conformance" has any.
type fixtures struct{}

func newFixtures() *fixtures { return nil }

func (*fixtures) options() []server.ServerOption { return nil }

func (*fixtures) register(*server.MCPServer) {}

func (*fixtures) hasTool(string) bool { return false }

func (*fixtures) hasPrompt(string) bool { return false }

func (*fixtures) hasResource(string) bool { return false }
