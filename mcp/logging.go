package mcp

import (
	"context"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/internal/fault"
)

// setLevel answers logging/setLevel. From protocol version 2026-07-28 on, the method does not
// exist, and each request names its own level.
func setLevel(_ context.Context, rq *request) (any, *rpcError, bool) {
	if rq.modern {
		return nil, rq.unknownMethod(), true
	}
	level, _, _ := rq.m.params.text("level")
	if !isLevel(level) {
		return nil, errorf(protocol.INVALID_PARAMS, "The level must be debug, info, notice, warning, error, critical, alert or emergency."), true
	}
	rq.s.sessions.setLevel(rq.session, protocol.LoggingLevel(level))
	return struct{}{}, nil, true
}

func isLevel(s string) bool {
	return protocol.LoggingLevel(s).ShouldSendTo(protocol.LoggingLevelDebug)
}

// logCall sends a log message about a finished call of a tool, if the client has set a level
// and the message has at least this level. The message says nothing that the answer does not say.
func (rq *request) logCall() {
	level, _, _ := rq.m.meta.text(protocol.MetaKeyLogLevel)
	if !rq.modern {
		level = string(rq.s.sessions.level(rq.session))
	}
	outcome, severity := rq.outcome, protocol.LoggingLevelWarning
	switch outcome {
	case "":
		outcome, severity = "ok", protocol.LoggingLevelInfo
	case string(fault.Internal):
		severity = protocol.LoggingLevelError
	}
	if !isLevel(level) || !severity.ShouldSendTo(protocol.LoggingLevel(level)) {
		return
	}
	rq.out.notify("notifications/message", map[string]any{"level": severity, "logger": "tools",
		"data": map[string]string{"tool": shorten(rq.tool), "outcome": outcome}})
}
