// Command generate writes the document that the types of pkg/client are
// generated from.
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
	text, err := document.ClientJSON()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], text, 0o600); err != nil {
		log.Fatal(err)
	}
}
