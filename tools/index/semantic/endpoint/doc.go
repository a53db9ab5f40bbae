// Package endpoint speaks to models that are served over HTTP: embeddings and
// chat in OpenAI's form, reranking in the form that Cohere, Jina and Text
// Embeddings Inference share.
//
// No error and no log line contains the key, a text, or more of an answer than the
// endpoint's short error message. Answers are validated, and read up to a limit. Redirects
// are never followed, because they could send the key elsewhere. The limits of requests and
// tokens hold for everything that a Client sends.
package endpoint
