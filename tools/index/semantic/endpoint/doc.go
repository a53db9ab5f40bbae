// Package endpoint calls models over HTTP. Embeddings and chat use the format of OpenAI.
// Reranking uses the format that Cohere, Jina and Text Embeddings Inference share.
//
// No error and no log line contains the key, a text, or more of an answer than the endpoint's
// short error message. Answers are validated, and read up to a limit. Redirects are never
// followed, because they could send the key elsewhere.
//
// [NewEmbeddings], [NewReranker] and [NewChat] return the clients of a model.
package endpoint
