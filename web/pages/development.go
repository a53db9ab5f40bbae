//go:build !conformance

package pages

import "satchel/web"

// development returns the pages that only a development build has.
func development() []func(*web.Site) error { return nil }
