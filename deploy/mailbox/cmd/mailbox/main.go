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
	"syscall"
	"time"

	"github.com/doorward/doorward/deploy/mailbox"
)

// shutdownTimeout bounds how long a stop waits for requests in progress.
const shutdownTimeout = 10 * time.Second

func main() {
	source := mailboxVariables(os.Environ())
	var s settings
	source.Load(&s)
	if len(os.Args) > 1 {
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
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "mailbox:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then completes the mails and requests in progress.
func run(ctx context.Context, s settings) (err error) {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	box, err := mailbox.Open(s.Dir, mailbox.Config{Keep: s.Keep, Log: log})
	if err != nil {
		return err
	}
	web := &http.Server{
		Handler:           routes(box),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	defer func() {
		// The caller's context has ended by now.
		closing, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		err = errors.Join(err, box.Close(closing), web.Shutdown(closing))
	}()

	smtpListener, err := net.Listen("tcp", s.SMTPListen)
	if err != nil {
		return fmt.Errorf("listen on DOORWARD_MAILBOX_SMTP_LISTEN: %w", err)
	}
	httpListener, err := net.Listen("tcp", s.HTTPListen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen on DOORWARD_MAILBOX_HTTP_LISTEN: %w", err), smtpListener.Close())
	}
	ended := make(chan error, 2)
	go func() { ended <- box.ServeSMTP(smtpListener) }()
	go func() { ended <- web.Serve(httpListener) }()
	log.Info("listening", "protocol", "smtp", "address", smtpListener.Addr().String())
	log.Info("listening", "protocol", "http", "address", httpListener.Addr().String())

	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-ended:
		return err
	}
}

// routes are the pages, a redirect from / to them, and the API for text messages.
func routes(box *mailbox.Mailbox) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(mailbox.Path, box.Handler())
	mux.Handle(mailbox.Path+"/", box.Handler())
	mux.Handle(mailbox.SMSPath, box.SMSHandler())
	mux.Handle("GET /{$}", http.RedirectHandler(mailbox.Path, http.StatusFound))
	return mux
}
