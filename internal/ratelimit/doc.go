// Package ratelimit says whether one more request of somebody's is within what
// they may make in the long run, by a token bucket for each key.
//
// It promises that its memory is bounded whatever keys come, however many and
// however long: it keeps the keys that have spent most, and forgets first who
// would be let in anyway. So who is over the limit does not get a new bucket by
// asking under many other names, and a flood of names does not reset everyone.
// It starts no goroutine and reads no clock but the one it is given.
package ratelimit
