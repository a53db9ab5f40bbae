// Package space defines the types that the parts of Satchel share: users, spaces, the
// paths in a space, change sets and commits. It also defines the small interfaces that
// connect the packages.
//
// It imports only the standard library and internal/fault, and keeps no state. Change it
// with care, because most other packages depend on it.
//
// A space is a bare git repository with the memory, resources, skills and knowledge of a
// person or a team. Every write is a [ChangeSet] that a [Committer] turns into a [Commit].
// An answer about a space names the commit or the blobs that it describes.
package space
