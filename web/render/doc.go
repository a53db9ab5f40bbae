// Package render turns Markdown, source code and differences into HTML that is safe on a
// page of this server: see [Markdown], [Source] and [Patch].
//
// An attacker may have written the input. The output has only elements and attributes that
// this package writes itself: no scripts, no styles, and no addresses except http, https,
// mailto and pages of the space. It loads nothing from other sites. The size and nesting of
// the input are limited. The work is linear in the input, except for documents, which
// [MaxMarkdown] limits.
package render
