// Package render turns what members and their AIs wrote into HTML that is safe
// on a page of this server: Markdown, source code, differences.
//
// Whoever wrote it may be an attacker. What comes out holds only elements and
// attributes that this package writes itself: no script, no style, no address
// but of http, https, mailto and this space's own pages. It loads nothing from
// elsewhere. Input is bounded in size and nesting, and the work is linear in it
// but for what [MaxMarkdown] keeps small.
package render
