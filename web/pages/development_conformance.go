//go:build conformance

package pages

import (
	"satchel/web"
	"satchel/web/styleguide"
)

// development returns the pages that only a development build has.
func development() []func(*web.Site) error { return []func(*web.Site) error{styleguide.Register} }
