// Package semantic finds passages by what they mean: it keeps one vector for
// each chunk of a collection, made by an [Embedder], and compares them with the
// vector of a query.
//
// # What it promises
//
//   - Vectors are a cache of what the model says of the index's chunks, and
//     never the truth: a missing or damaged file is made again, and what was
//     embedded once, by the text's hash and the model's [Identity], is not
//     asked for again.
//   - Nothing waits for the model: a collection is embedded in the background,
//     in slices, and goes on where it was after a restart. Until the vectors of
//     a new model are whole, those of the old one answer; the switch is one
//     rename.
//   - A query waits for its own vector no longer than [Options.QueryWait], and
//     not at all while the breaker is open.
//   - Every comparison is exact over all vectors that the filter lets through;
//     there is no approximate graph to miss a neighbour.
//
// # How vectors are kept
//
// A vector is normalised, so that a dot product is the cosine, and each of its
// numbers is kept in one byte, scaled to the vector's own range. A search reads
// all of them against the query in six bits, eight numbers in two
// multiplications, and then scores the best few hundred again against the query
// as it is.
package semantic
