// Package app runs the whole product as one process (standalone). It starts private
// servers of its own (package privateserver), keeps its secrets and
// certificates in the data folder (folder.go, secrets.go, certificate.go), and wires the
// services and the gateway to each other in memory (wiring.go). No service behaves
// differently for it.
//
// The other files are the subcommands of doorward, which work on the data of a deployment
// (databases.go): doctor.go, migrate.go, rotate.go (key rotation), deadletters.go, eventrewind.go, adminkey.go,
// tenant.go with the package tenantmove, and backup.go with the package backup.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/doorward/doorward/deploy/standalone/privateserver"
	gateway "github.com/doorward/doorward/gateway/app"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	application "github.com/doorward/doorward/services/application/app"
	directory "github.com/doorward/doorward/services/directory/app"
	idsite "github.com/doorward/doorward/services/idsite/app"
	mfa "github.com/doorward/doorward/services/mfa/app"
	notification "github.com/doorward/doorward/services/notification/app"
	oauth "github.com/doorward/doorward/services/oauth/app"
)

// About says in --help what the process is.
const About = "the whole identity service in one process, with a database, a broker and a mailbox of its own;\n" +
	"doorward help lists the commands that work on its data"

// Config is what standalone itself reads; the services read the rest.
type Config struct {
	DataDir     string `env:"DOORWARD_DATA_DIR" default:".doorward" help:"folder of the database, the keys, the certificates and the mailbox"`
	PostgresBin string `env:"DOORWARD_POSTGRES_BIN" help:"folder of PostgreSQL's initdb and postgres; detected when it is not set"`

	source *env.Source
}

// FromEnv reads the configuration.
func FromEnv(source *env.Source) Config {
	cfg := Config{source: source}
	for name, what := range map[string]string{
		"DOORWARD_BASE_URL":             "https://, the address to serve on, and /v1",
		"DOORWARD_BOOTSTRAP_KEY_ID":     "made at the first start, in apikey.json",
		"DOORWARD_BOOTSTRAP_KEY_SECRET": "made at the first start, in apikey.json",
		"DOORWARD_INTERNAL_SECRET":      "made at the first start, in secrets.json",
		"DOORWARD_MASTER_KEY":           "made at the first start, in secrets.json",
		"DOORWARD_SMS_MAILBOX_URL":      "the development mailbox",
		"DOORWARD_SMS_PROVIDER":         "the development mailbox",
		"DOORWARD_SMTP_URL":             "the development mailbox",
		"DOORWARD_TLS_CERT":             "made by an authority of its own, ca.pem",
		"DOORWARD_TLS_KEY":              "made by an authority of its own",
		"DATABASE_URL":                  "a private PostgreSQL",
		"KAFKA_BROKERS":                 "a private broker in this process",
		"KAFKA_USERNAME":                "that of the private broker",
		"KAFKA_PASSWORD":                "that of the private broker, new at every start",
		"KAFKA_SASL_MECHANISM":          "that of the private broker",
		"REDIS_URL":                     "a private server in this process, with a password that is new at every start",
	} {
		source.DescribeDefault(name, what)
	}
	for name, value := range map[string]string{
		"DOORWARD_LISTEN": "localhost:8443", "DOORWARD_OPS_LISTEN": "localhost:0, a free port", "DOORWARD_LOG_LEVEL": "warn",
		"DOORWARD_SIGN_UP": "true",
	} {
		source.DescribeDefault(name, value)
		source.SetDefault(name, strings.TrimSuffix(value, ", a free port"))
	}
	source.Unused("DOORWARD_MAILBOX_URL", "DOORWARD_INTERNAL_TLS_CERT", "DOORWARD_INTERNAL_TLS_KEY")
	for _, name := range deployment.Services {
		source.Unused(deployment.AddressVariable(name))
	}
	source.Group("Data and addresses")
	source.Load(&cfg)
	source.Check(new(deployment.Config))
	source.Group("Servers to use instead of the private ones")
	source.Check(new(externalServers))
	for _, part := range []struct {
		title  string
		config any
	}{
		{"Gateway: TLS, limits", new(gateway.Config)},
		{"Accounts and passwords", new(directory.Config)},
		{"Applications and logins", new(application.Config)},
		{"Tokens and API keys", new(oauth.Config)},
		{"Second factors", new(mfa.Config)},
		{"Mails and text messages", new(notification.Config)},
		{"Hosted pages, the first tenant", new(idsite.Config)},
	} {
		source.Group(part.title)
		source.Check(part.config)
	}
	source.Group("Process")
	return cfg
}

// externalServers are servers of others, which a standalone process may use.
type externalServers struct {
	Database secure.Secret `env:"DATABASE_URL"`
	Redis    redisclient.Config
	Kafka    outbox.Config
}

// Help has the help texts that are longer than a line.
func (externalServers) Help() map[string]string {
	return map[string]string{
		"DATABASE_URL": "PostgreSQL, postgres://user:password@host/database (several hosts as host1,host2; TLS by " +
			"?sslmode=verify-full)",
	}
}

// Run starts the whole process and prints its addresses and the first steps.
func Run(ctx context.Context, p *run.Process, cfg Config) error { return runTo(ctx, p, cfg, os.Stdout) }

func runTo(ctx context.Context, p *run.Process, cfg Config, out io.Writer) error {
	listener, err := listen(cfg.source)
	if err != nil {
		return err
	}
	p.OnClose("listener", func(context.Context) error { return ignoreClosed(listener.Close()) })
	folder, err := lockFolder(cfg.DataDir)
	if err != nil {
		return err
	}
	p.OnClose("data folder", func(context.Context) error { return folder.Close() })
	s := &standalone{process: p, source: cfg.source, folder: folder, listener: listener}
	if err := s.startServers(ctx, cfg); err != nil {
		return err
	}
	if err := s.loadSecrets(); err != nil {
		return err
	}
	if err := s.openServices(ctx); err != nil {
		return err
	}
	s.printAddresses(out)
	return nil
}

// standalone is the process while it starts.
type standalone struct {
	process  *run.Process
	source   *env.Source
	folder   *folder
	listener net.Listener
	key      apiKeyFile
	mailbox  http.Handler // the mailbox's pages; nil where mail goes to a real server
}

// listen opens the public address first, so that a second standalone on it ends
// before it touches anything.
func listen(source *env.Source) (net.Listener, error) {
	var cfg struct {
		Listen string `env:"DOORWARD_LISTEN" default:"localhost:8443" help:"address to serve on"`
	}
	source.Load(&cfg)
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_LISTEN: %q is not a host and a port such as localhost:9443, or :9443 for all addresses", cfg.Listen)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf(
			"listen on DOORWARD_LISTEN: %w; end the process that holds the address, or choose another, such as DOORWARD_LISTEN=localhost:9443", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on DOORWARD_LISTEN: %w; choose an address of this machine, such as DOORWARD_LISTEN=localhost:9443", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	address := "https://" + net.JoinHostPort(host, port)
	source.SetDefault("DOORWARD_BASE_URL", strings.TrimSuffix(address, ":443")+"/v1")
	return listener, nil
}

// passwordLength is that of the passwords of the private Redis and Kafka, which
// are new at every start.
const passwordLength = 32

// startServers starts a private server in place of each that the environment does not name.
func (s *standalone) startServers(ctx context.Context, cfg Config) error {
	if !s.source.Has("DATABASE_URL") {
		url, err := privateserver.StartPostgres(ctx, s.process, s.folder.join("postgres"), cfg.PostgresBin)
		if err != nil {
			return err
		}
		s.source.SetDefault("DATABASE_URL", url)
	}
	if !s.source.Has("REDIS_URL") {
		url, err := privateserver.StartRedis(s.process, secure.Token(passwordLength))
		if err != nil {
			return err
		}
		s.source.SetDefault("REDIS_URL", url)
	}
	if !s.source.Has("KAFKA_BROKERS") {
		password := secure.Token(passwordLength)
		address, err := privateserver.StartKafka(s.process, s.folder.join("kafka"), password)
		if err != nil {
			return err
		}
		private := broker{address, password.Reveal()}
		private.setVariables(s.source)
		if err := s.folder.writeJSON(brokerFile, private); err != nil {
			return err
		}
		s.process.OnClose(brokerFile, func(context.Context) error { return os.Remove(s.folder.join(brokerFile)) })
	}
	if !s.source.Has("DOORWARD_SMTP_URL") {
		pages, addresses, err := privateserver.StartMailbox(s.process, s.folder.join("mailbox"))
		if err != nil {
			return err
		}
		s.mailbox = pages
		s.source.SetDefault("DOORWARD_SMTP_URL", addresses.SMTP)
		if !s.source.Has("DOORWARD_SMS_PROVIDER") {
			s.source.SetDefault("DOORWARD_SMS_PROVIDER", "mailbox")
			s.source.SetDefault("DOORWARD_SMS_MAILBOX_URL", addresses.Texts)
		}
	}
	return nil
}

// printAddresses prints where everything is and what to do first.
func (s *standalone) printAddresses(out io.Writer) {
	host := strings.TrimSuffix(s.key.BaseURL, "/v1")
	lines := []string{
		"",
		"Doorward is ready.",
		"",
		"  Base URL        " + s.key.BaseURL,
		"  API key         " + s.folder.join("apikey.json"),
		"  CA certificate  " + s.key.CAFile,
	}
	if s.mailbox != nil {
		lines = append(lines, "  Mailbox         "+host+"/_mailbox (all mails and text messages)")
	}
	lines = append(lines,
		"  Private port    http://"+s.process.Ops+" (/healthz, /readyz, /metrics; DOORWARD_OPS_LISTEN chooses it)",
		"", "Try it:", "", "  curl -sL -K "+s.folder.join("curl.conf")+" "+s.key.BaseURL+"/tenants/current",
		"", "Ctrl-C stops it; the next start keeps everything.", "")
	_, _ = fmt.Fprintln(out, strings.Join(lines, "\n"))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
