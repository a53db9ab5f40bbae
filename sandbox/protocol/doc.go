// Package protocol is what the server and the agent of a sandbox say to each other: the
// messages, their frames and limits, and the places and users inside a sandbox that both
// rely on. The connection is the standard input and output of the agent.
//
// The server calls [Connect] first. The [Client] that it returns runs commands, collects
// their changes and applies those of others. The agent calls [NewConn], and answers the
// requests that [Conn.Next] returns.
//
// Everything that an agent sends may come from an attacker: the Client limits every frame,
// and its user validates every path.
package protocol
