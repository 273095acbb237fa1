// Command notification runs the notification service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/notification/app"
)

func main() {
	service.Main("notification", "sends the mails that accounts are to get", app.Open)
}
