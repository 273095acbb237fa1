// Command notification runs the notification service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/notification/app"
)

func main() {
	run.Main("notification", "sends the mails that accounts are to get", env.Load[app.Config], app.Run)
}
