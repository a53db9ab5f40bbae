// Package libraries generates questions about the documentation of several libraries, which is
// searched at once. Only [Named] questions name their library.
//
// Call [Generate] with the pages of the libraries, and [Collection.Measure] with an index of
// the documents (see [evaluate.BuildLibraries]). The same pages always give the same questions.
package libraries
