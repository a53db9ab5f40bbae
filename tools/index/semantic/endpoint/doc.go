// Package endpoint speaks to models that are served over HTTP: embeddings and
// chat in OpenAI's form, reranking in the form that Cohere, Jina and Text
// Embeddings Inference share.
//
// It promises that no error and no log line holds the key, a text or what an
// endpoint answered beyond a short message of its own; that an answer is
// believed only as far as it was checked, and read only as far as its bound;
// that a redirect is never followed, since it could carry the key elsewhere; and
// that the limits of requests and tokens hold for everything that a Client
// sends.
package endpoint
