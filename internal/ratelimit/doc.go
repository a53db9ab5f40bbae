// Package ratelimit limits the rate of the requests of each caller, with a token bucket for each
// key. Create a Limiter with New, and call Allow for each request.
//
// Its memory is bounded, however many keys there are and however long they are. If there are too
// many keys, it forgets the bucket that has spent the least. So a caller over the limit does not
// get a new bucket by asking under many other names, and a flood of names does not reset all
// buckets. The package starts no goroutine, and reads only the clock in Options.
package ratelimit
