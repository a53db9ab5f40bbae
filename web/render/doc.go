// Package render turns Markdown, source code and differences into HTML that is safe on a
// page of this server.
//
// Its input may be written by an attacker. The output has only elements and attributes that
// this package writes itself: no scripts, no styles, and no addresses except http, https,
// mailto and pages of the space. It loads nothing from other sites. The input is limited in
// size and nesting. The work is linear in the input, except in documents, which are limited
// by [MaxMarkdown].
package render
