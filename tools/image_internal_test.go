package tools

import (
	"encoding/base64"
	"testing"
)

func TestValidImage(t *testing.T) {
	decode := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	gif := decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
	lossy := decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	lossless := decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	none := append([]byte(nil), gif...)
	none[6], none[8] = 0, 0
	tests := []struct {
		name, mime string
		b          []byte
		want       bool
	}{
		{"GIF", "image/gif", gif, true},
		{"GIF of no pixels", "image/gif", none, false},
		{"GIF signature", "image/gif", gif[:6], false},
		{"PNG signature", "image/png", []byte("\x89PNG\r\n\x1a\n"), false},
		{"JPEG signature", "image/jpeg", []byte("\xff\xd8\xff"), false},
		{"WebP", "image/webp", lossy, true},
		{"WebP, lossless", "image/webp", lossless, true},
		{"WebP that ends early", "image/webp", lossy[:30], false},
		{"WebP signature", "image/webp", lossy[:16], false},
		{"WebP of another kind", "image/webp", append(append([]byte(nil), lossy[:12]...), "JUNK\x16\x00\x00\x00aaaaaaaaaaaaaaaaaaaaaa"...), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := imageType(tt.b); got != tt.mime && tt.want {
				t.Errorf("it is taken for %q", got)
			}
			if got := validImage(tt.mime, tt.b); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
