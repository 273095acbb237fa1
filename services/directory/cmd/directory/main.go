// Command directory runs the directory service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/directory/app"
)

func main() {
	service.Main("directory", "keeps tenants, directories and accounts, and decides who may log in", app.Open)
}
