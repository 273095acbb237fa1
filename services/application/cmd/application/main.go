// Command application runs the application service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/application/app"
)

func main() {
	service.Main("application", "keeps applications and their account stores, and logs accounts in through them",
		app.Open)
}
