// Package exports reads what people have in other assistants and in note apps: export
// archives, memory texts and folders of notes. It turns them into pages and proposed facts.
// Any bytes may be passed.
package exports
