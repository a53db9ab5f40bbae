// Package child is the sandbox program: gVisor's sentry and gofer, and the owner process
// that starts and ends them. Main runs the process that its command line names. The server
// never links this package. The server speaks to the owner over a link.Link.
package child
