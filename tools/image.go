package tools

import (
	"bytes"
	"encoding/binary"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
)

// imageNames are the image types that clients accept, with their usual names.
var imageNames = map[string]string{
	"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP",
}

// imageType detects the type of an image from its content. It returns "" for a type that
// clients do not accept.
func imageType(b []byte) string {
	if t := http.DetectContentType(b); imageNames[t] != "" {
		return t
	}
	return ""
}

// validImage reports whether an image's header is readable and, except in a WebP image, declares at
// least one pixel. It does not decode the pixels: a header could declare a huge image, and most
// clients show even a truncated file.
func validImage(mime string, b []byte) bool {
	r := bytes.NewReader(b)
	switch mime {
	case "image/png":
		c, err := png.DecodeConfig(r)
		return err == nil && c.Width > 0 && c.Height > 0
	case "image/jpeg":
		c, err := jpeg.DecodeConfig(r)
		return err == nil && c.Width > 0 && c.Height > 0
	case "image/gif":
		c, err := gif.DecodeConfig(r)
		return err == nil && c.Width > 0 && c.Height > 0
	case "image/webp":
		return validWebP(b)
	}
	return false
}

// webpHeader has, for each type of first chunk, the number of bytes that a decoder needs to find
// the image's size (RFC 9649, sections 2.5 to 2.7).
var webpHeader = map[string]int{"VP8 ": 10, "VP8L": 5, "VP8X": 10}

// validWebP checks the sizes that a WebP file declares, and the type of its first chunk.
func validWebP(b []byte) bool {
	if len(b) < 20 {
		return false
	}
	kind, data := string(b[12:16]), b[20:]
	riff, chunk := uint64(binary.LittleEndian.Uint32(b[4:])), uint64(binary.LittleEndian.Uint32(b[16:]))
	need, known := webpHeader[kind]
	if !known || riff+8 > uint64(len(b)) || chunk+12 > riff || chunk < uint64(need) || len(data) < need {
		return false
	}
	switch kind {
	case "VP8 ": // the start code of a key frame
		return bytes.Equal(data[3:6], []byte{0x9d, 0x01, 0x2a})
	case "VP8L":
		return data[0] == 0x2f
	}
	return true
}
