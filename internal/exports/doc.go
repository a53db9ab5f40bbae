// Package exports reads what people have in other assistants and in note apps: export
// archives, memory texts and folders of notes. Read turns them into pages and proposed facts,
// and accepts any bytes. Untouched says whether a newer import may replace a page.
package exports
