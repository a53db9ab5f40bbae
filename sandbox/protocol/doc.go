// Package protocol holds the messages between the agent of a sandbox and its host, which is the
// server. It also holds both ends of their connection, which is the standard input and output of
// the agent, and the paths and users inside a sandbox, because both sides rely on them.
//
// The host calls [Connect] first. The [Client] that Connect returns runs commands, collects
// their changes, and applies changes from outside the sandbox. The agent calls [NewConn], and
// answers the requests that [Conn.Next] returns.
//
// Everything that an agent sends may come from an attacker: the Client limits every frame,
// and its caller validates every path.
package protocol
