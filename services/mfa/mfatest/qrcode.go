package mfatest

import (
	"bytes"
	"image/png"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// pureBarcode reads a QR code as it was drawn. The search for one in a photograph
// misses one code in a hundred.
var pureBarcode = map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true}

// ReadQRCode returns the text of the QR code in a PNG.
func ReadQRCode(t testing.TB, picture []byte) string {
	t.Helper()
	drawn, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(drawn)
	if err != nil {
		t.Fatal(err)
	}
	read, err := qrcode.NewQRCodeReader().Decode(bitmap, pureBarcode)
	if err != nil {
		t.Fatal(err)
	}
	return read.GetText()
}
