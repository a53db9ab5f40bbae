// Package seal encrypts data that the server must store and read again: the tokens of remotes,
// and files that could not be committed. Load reads the key and returns a Box. The key is a file
// in the data directory, so a copy of only the database or only the sealed files reveals nothing.
//
// Data that is sealed for one purpose does not open for another. A changed byte causes an error,
// and never different content.
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
	// form is the first byte of all sealed data. It distinguishes this format from later ones.
	form = 1
)

// Box seals and opens. Its methods are safe for concurrent use.
type Box struct{ master []byte }

// Load returns the Box of the key in a file. It creates a missing file durably, and makes it
// readable only by its owner.
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

// create writes the key under another name first, so that the file called name is always
// complete. If two processes create a key, the first wins, provided that the file system has
// links.
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
	dir.Sync() // systems that cannot sync a directory keep its entries in order themselves
	return nil
}

// cipher returns the cipher for a purpose. Each purpose has its own key.
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
// distinguishing this server's tokens from others. It is the same in every process with
// the same server's key.
func (b *Box) Derive(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, b.master, nil, "satchel/derived/"+purpose, keySize)
}

// Seal encrypts text for a purpose, such as "remote token", bound to a subject,
// such as a space. Open needs the same purpose and the same subject.
func (b *Box) Seal(text []byte, purpose, subject string) ([]byte, error) {
	c, err := b.cipher(purpose)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return c.Seal([]byte{form}, nil, text, []byte(subject)), nil
}

// Open decrypts the result of Seal. The error has the code fault.Invalid if the data was sealed
// with another key, for another purpose or for another subject, or if it was changed.
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
