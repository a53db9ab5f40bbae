package acme

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// makeDir creates the directory for the files of one authority. Each authority has its own
// directory. So the certificate of a staging authority is not served after another
// authority is configured.
func makeDir(dir, directoryURL string) (string, error) {
	u, err := url.Parse(directoryURL)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("the ACME directory must be a URL")
	}
	sum := sha256.Sum256([]byte(directoryURL))
	sub := filepath.Join(dir, strings.ReplaceAll(u.Hostname(), ":", "_")+"-"+hex.EncodeToString(sum[:4]))
	for _, d := range []string{dir, sub} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return "", fmt.Errorf("directory for certificates: %w", err)
		}
		if err := os.Chmod(d, 0o700); err != nil {
			return "", fmt.Errorf("directory for certificates: %w", err)
		}
	}
	return sub, nil
}

func (m *Manager) certificateFile() string { return filepath.Join(m.dir, m.o.Domain+".pem") }

func (m *Manager) loadCertificate() (*tls.Certificate, error) {
	b, err := os.ReadFile(m.certificateFile())
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(b, b)
	if err != nil {
		return nil, err
	}
	if err := m.check(&c); err != nil {
		return nil, err
	}
	return &c, nil
}

func (m *Manager) saveCertificate(c *tls.Certificate) error {
	key, err := encodeKey(c.PrivateKey)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(key)
	for _, der := range c.Certificate {
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return err
		}
	}
	return m.write(m.certificateFile(), b.Bytes())
}

// accountKey returns the key that identifies our account at the authority. It is created once.
func (m *Manager) accountKey() (crypto.Signer, error) {
	file := filepath.Join(m.dir, "account.pem")
	b, err := os.ReadFile(file)
	switch {
	case err == nil:
		block, _ := pem.Decode(b)
		if block == nil {
			return nil, fmt.Errorf("%s holds no key; remove it, and another is made", file)
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s holds no key; remove it, and another is made: %w", file, err)
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("%s holds a key that cannot sign; remove it, and another is made", file)
		}
		return signer, nil
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if b, err = encodeKey(key); err != nil {
		return nil, err
	}
	return key, m.write(file, b)
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// write replaces a file completely, and only after the new content is on disk. Only the
// owner can read the file.
func (m *Manager) write(file string, b []byte) (err error) {
	f, err := os.CreateTemp(m.dir, ".new-*") // has mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), file); err != nil || runtime.GOOS == "windows" {
		return err
	}
	d, err := os.Open(m.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
