// Command mfa runs the mfa service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/mfa/app"
)

func main() {
	service.Main("mfa", "keeps second factors: phones, authenticators, and the challenges that prove them", app.Open)
}
