// Package space holds the words that every part of Satchel shares: who a user
// is, what a space is, which paths may exist in one, what a change set and a
// commit are, and the small interfaces across which the packages meet.
//
// It imports the standard library and internal/fault alone, keeps no state
// and is changed with care: everything else speaks its words.
//
// A space is a bare git repository of one person's or one team's memory,
// resources, skills and knowledge. Every write, whoever makes it, is a
// [ChangeSet] that a [Committer] turns into a [Commit]; every answer about a
// space names the commit that it speaks of.
package space
