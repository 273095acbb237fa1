// Roots prints the certificates of the public authorities in PEM, for the images.
// They come from a Go module, so that its checksum fixes them. An authority that
// is trusted under a condition only is left out.
package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // Flush returns the error
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "roots:", err)
		os.Exit(1)
	}
}
