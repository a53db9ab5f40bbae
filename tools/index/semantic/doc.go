// Package semantic finds passages by their meaning: it keeps one vector for each chunk of a
// collection, made by an [Embedder], and compares them with the vector of a query.
//
// # What it promises
//
//   - Vectors are a cache and never the truth: a missing or damaged file is made again. A text
//     is embedded only once for a model [Identity].
//   - Nothing waits for the model: a collection is embedded in the background, in slices, and
//     continues after a restart. Until the vectors of a new model are complete, those of the
//     old one answer; one rename replaces them.
//   - A query waits for its own vector no longer than [Options.QueryWait], and
//     not at all while the breaker is open.
//   - Every comparison is exact over all vectors that meet the filter; there is no
//     approximate graph that could miss a neighbour.
//
// # How vectors are kept
//
// A vector is normalised, so that a dot product is the cosine, and each of its
// numbers is kept in one byte, scaled to the vector's own range. A search reads
// all of them against the query in six bits, eight numbers in two
// multiplications, and then scores the best few hundred again against the query
// as it is.
package semantic
