// Command generate generates the methods of pkg/client, and the document from which oapi-codegen
// generates its types.
package main

import (
	"log"
	"os"

	"github.com/doorward/doorward/pkg/openapi"
)

func main() {
	document, err := openapi.New(openapi.Deployment{Base: "https://localhost:8443/v1", Alias: "service"})
	if err != nil {
		log.Fatal(err)
	}
	for i, write := range []func() ([]byte, error){document.ClientJSON,
		func() ([]byte, error) { return operations(document) }} {
		text, err := write()
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(os.Args[i+1], text, 0o644); err != nil { //nolint:gosec // a source file
			log.Fatal(err)
		}
	}
}
