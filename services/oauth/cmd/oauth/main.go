// Command oauth runs the OAuth service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/oauth/app"
)

func main() {
	service.Main("oauth", "keeps API keys, and issues, checks and revokes tokens", app.Open)
}
