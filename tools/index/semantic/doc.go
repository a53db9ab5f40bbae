// Package semantic finds passages by their meaning. It keeps a vector of an [Embedder] for each
// chunk of a collection, and compares these vectors with the vector of a query.
//
// [Open] starts an [Engine]. [Engine.Changed] requests the vectors of a collection. For a
// search, [Engine.Ask] starts to embed the query, and [View.Nearest] compares the vectors.
//
// # Guarantees
//
//   - Vectors are only a cache: a missing or damaged file is written again. A text is embedded
//     again for the same model [Identity] only if the cache no longer has its vector.
//   - No update of an index waits for the model. A collection is embedded in the background, in
//     slices, and the work continues after a restart. The vectors of the old model answer until
//     those of a new model are complete. One rename then replaces them.
//   - A query waits for its own vector at most [Options.QueryWait], and not at all while the
//     [Breaker] rests after failures.
//   - Every comparison covers all vectors that meet the filter. There is no approximate graph
//     that could miss a neighbour.
//
// # Format
//
// A vector is normalised, so a dot product is the cosine. Each of its numbers takes one byte,
// scaled to the range of the vector. A search first compares all vectors with a query of six
// bits per number, eight numbers in two multiplications. It then scores the best few hundred
// again with the exact query.
package semantic
