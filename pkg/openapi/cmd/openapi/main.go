// Command openapi writes the description of the interface, as a deployment on
// this machine has it.
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
	text, err := document.JSON()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(text); err != nil {
		log.Fatal(err)
	}
}
