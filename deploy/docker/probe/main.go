// Probe asks an address over HTTP and ends with status 0 if the answer is 200.
// It is the health check of the images, which hold no shell and no curl. An
// orchestrator that can ask /readyz by itself needs no probe.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

// standard is where every process serves its private port in an image.
const standard = "http://127.0.0.1:9090/readyz"

func main() {
	address := standard
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, address, "answers", answer.Status)
		os.Exit(1)
	}
}
