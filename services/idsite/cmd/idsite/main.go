// Command idsite runs the idsite service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/idsite/app"
)

func main() {
	service.Main("idsite", "makes tenants and keeps the settings of their hosted pages", app.Open)
}
