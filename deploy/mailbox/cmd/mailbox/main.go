// Command mailbox is the development mail server as a process of its own. Its
// settings come from the environment; --help lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/doorward/doorward/deploy/mailbox"
	"github.com/doorward/doorward/pkg/env"
)

// settings are the environment variables of the mailbox.
type settings struct {
	Dir        string `env:"DOORWARD_MAILBOX_DIR" default:".doorward/mailbox" help:"folder that keeps the messages"`
	SMTPListen string `env:"DOORWARD_MAILBOX_SMTP_LISTEN" default:"localhost:2525"`
	HTTPListen string `env:"DOORWARD_MAILBOX_HTTP_LISTEN" default:"localhost:8025"`
	Keep       int    `env:"DOORWARD_MAILBOX_KEEP" default:"10000" min:"1"`
}

// Help has the help texts that are longer than a line.
func (settings) Help() map[string]string {
	return map[string]string{
		"DOORWARD_MAILBOX_SMTP_LISTEN": "address that accepts mail; port 0 takes a free one",
		"DOORWARD_MAILBOX_HTTP_LISTEN": "address of the page /_mailbox, and of text messages; port 0 takes a free " +
			"one",
		"DOORWARD_MAILBOX_KEEP": "how many messages are kept; the oldest are removed",
	}
}

func main() {
	// The mailbox shares a file of variables with the services, whose names are not errors
	// here; DOORWARD_MAILBOX_URL is a variable of the gateway.
	source := env.New(slices.DeleteFunc(os.Environ(), func(line string) bool {
		return !strings.HasPrefix(line, "DOORWARD_MAILBOX_") || strings.HasPrefix(line, "DOORWARD_MAILBOX_URL=")
	}))
	var s settings
	source.Load(&s)
	if len(os.Args) > 1 {
		if os.Args[1] == "--probe" { // the health check of the image
			if err := probe(s.HTTPListen); err != nil {
				fmt.Fprintln(os.Stderr, "mailbox:", err)
				os.Exit(1)
			}
			return
		}
		if argument := os.Args[1]; argument != "--help" && argument != "-h" {
			fmt.Fprintf(os.Stderr, "mailbox takes no argument %q; only --help is known\n", argument)
			os.Exit(2)
		}
		fmt.Printf("mailbox accepts every mail, keeps it, and shows it on the page %s.\n\n", mailbox.Path)
		source.Help(os.Stdout)
		return
	}
	if err := source.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "mailbox cannot start:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "mailbox:", err)
		os.Exit(1)
	}
}

// probe asks the mailbox at an address of this machine for its page.
func probe(address string) error {
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://" + address + mailbox.Path)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// run serves until ctx ends.
func run(ctx context.Context, s settings) error {
	box, err := mailbox.Open(s.Dir, s.Keep, time.Now)
	if err != nil {
		return err
	}
	smtpListener, err := net.Listen("tcp", s.SMTPListen)
	if err != nil {
		return fmt.Errorf("listen on DOORWARD_MAILBOX_SMTP_LISTEN: %w", err)
	}
	httpListener, err := net.Listen("tcp", s.HTTPListen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen on DOORWARD_MAILBOX_HTTP_LISTEN: %w", err), smtpListener.Close())
	}
	web := &http.Server{Handler: box.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second}
	ended := make(chan error, 2)
	go func() { ended <- box.ServeSMTP(ctx, smtpListener) }()
	go func() { ended <- web.Serve(httpListener) }()
	slog.Info("listening", "protocol", "smtp", "address", smtpListener.Addr().String())
	slog.Info("listening", "protocol", "http", "address", httpListener.Addr().String())
	return <-ended
}
