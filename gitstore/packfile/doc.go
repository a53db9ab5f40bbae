// Package packfile reads and writes the objects of a bare git repository: packs with
// their indexes, and loose objects, which it only reads. It verifies each object that it
// reads completely against its hash, and keeps recently read objects in memory.
//
// Call [Open] for the objects of a repository and [DB.Read] for one of them; [NewWriter]
// starts a pack. [Disk] makes files durable. The formats are those of git
// (gitformat-pack(5)).
package packfile
