// Package pages assembles the site of a server from package web and the pages of all subjects.
package pages

import (
	"satchel/web"
	"satchel/web/account"
	"satchel/web/admin"
	"satchel/web/connect"
	"satchel/web/files"
	"satchel/web/github"
	"satchel/web/history"
	"satchel/web/library"
	"satchel/web/memory"
	"satchel/web/remote"
	"satchel/web/review"
	"satchel/web/share"
	"satchel/web/signin"
	"satchel/web/spaces"
)

// New returns the site of a server. The caller must call Close to end its background work.
func New(o web.Options) (*web.Site, error) {
	s, err := web.New(o)
	if err != nil {
		return nil, err
	}
	for _, register := range append(development(), []func(*web.Site) error{
		signin.Register,
		account.Register,
		connect.Register,
		files.Register,
		library.Register,
		memory.Register,
		history.Register,
		review.Register,
		share.Register,
		github.Register,
		remote.Register,
		spaces.Register,
		admin.Register,
	}...) {
		if err := register(s); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}
