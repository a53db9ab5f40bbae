// Package seal encrypts what the server must keep and be able to read again:
// the tokens of remotes, and files that could not be committed. The key is a
// file of the data directory, so that a copy of the database or of the sealed
// files alone gives nothing away.
//
// It promises that what was sealed for one purpose opens for no other, and
// that a changed byte is an error and never other content.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"satchel/internal/fault"
)

const (
	keySize = 32
	// form begins everything sealed, so that another form can be told from it.
	form = 1
)

// Box seals and opens. Its methods are safe for concurrent use.
type Box struct{ master []byte }

// Load returns the Box of the key in a file, which is made where it is missing,
// durably and readable by its owner alone.
func Load(name string) (*Box, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(name); err != nil {
			return nil, fmt.Errorf("make the server's key: %w", err)
		}
		b, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the server's key: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != keySize {
		return nil, fault.New(fault.Invalid, "The file %s is not a key of this server. Restore the right file from a backup.", name)
	}
	return &Box{master: key}, nil
}

// create makes the key under another name first: a file by that name is whole,
// and of two processes that make one the first wins.
func create(name string) error {
	key := make([]byte, keySize)
	rand.Read(key)                                        // never fails
	f, err := os.CreateTemp(filepath.Dir(name), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		// Some file systems have no links.
		if err := os.Rename(f.Name(), name); err != nil {
			return err
		}
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	dir.Sync() // what has no such call keeps its entries in order itself
	return nil
}

// cipher returns the cipher for a purpose: each has a key of its own.
func (b *Box) cipher(purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, b.master, nil, "satchel/"+purpose, keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Derive returns a key of 32 bytes for a purpose other than sealing, such as
// telling this server's tokens from others. It is the same in every process with
// the same server's key.
func (b *Box) Derive(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, b.master, nil, "satchel/derived/"+purpose, keySize)
}

// Seal encrypts text for a purpose, such as "remote token", bound to a subject,
// such as a space: Open must be given the same two.
func (b *Box) Seal(text []byte, purpose, subject string) ([]byte, error) {
	c, err := b.cipher(purpose)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return c.Seal([]byte{form}, nil, text, []byte(subject)), nil
}

// Open decrypts what Seal returned. The error is a fault.Invalid if it was
// sealed with another key, for another purpose or subject, or was changed.
func (b *Box) Open(sealed []byte, purpose, subject string) ([]byte, error) {
	c, err := b.cipher(purpose)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if len(sealed) == 0 || sealed[0] != form {
		return nil, fault.New(fault.Invalid, "The data stored for %s has a format that this version cannot read.", purpose)
	}
	text, err := c.Open(nil, nil, sealed[1:], []byte(subject))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The data stored for %s cannot be decrypted with this server's key.", purpose)
	}
	return text, nil
}
