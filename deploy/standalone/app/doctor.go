package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/secure"
)

// Limits of the checks of Doctor.
const (
	doctorTimeout   = 10 * time.Second    // of one check
	clockWarning    = time.Second         // between this machine and PostgreSQL
	clockLimit      = 5 * time.Second     // tokens would be refused
	expiryWarning   = 30 * 24 * time.Hour // before the end of a certificate
	outboxAgeLimit  = time.Minute
	consumerLagHigh = 1000
	backupAgeLimit  = 26 * time.Hour // a night, and the time that a backup takes

	userAddressWindow = 7 * 24 * time.Hour // in which a login without the address of the user is reported
)

// doctorConfig is what Doctor reads of each deployment.
type doctorConfig struct {
	Databases   Databases
	MasterKey   secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
	Secret      secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true" help:"secret that all processes of the deployment share"`
	BaseURL     string        `env:"DOORWARD_BASE_URL" required:"true" help:"public address of the management API with its version"`
	Certificate string        `env:"DOORWARD_TLS_CERT" help:"certificate chain in PEM of the public address"`
	Internal    string        `env:"DOORWARD_INTERNAL_TLS_CERT" help:"certificate chain in PEM of the services' addresses"`
	IDSite      string        `env:"DOORWARD_IDSITE_SUFFIX" default:"localhost" help:"domain under which tenants have their hosted pages"`
	ClientAPI   deployment.ClientAPI
}

// hostname returns the host name of the public address.
func (c doctorConfig) hostname() string {
	address, err := url.Parse(c.BaseURL)
	if err != nil {
		return ""
	}
	return address.Hostname()
}

// DoctorVariables declares what Doctor reads.
func DoctorVariables(source *env.Source) {
	source.Declare(new(doctorConfig))
	source.Declare(new(serversConfig))
}

// finding is the result of one check. Advice says what to do unless it is ok.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warning or failed
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

// ErrCheckFailed is returned by Doctor when a check failed.
var ErrCheckFailed = errors.New("at least one check failed")

type doctor struct {
	now      func() time.Time
	findings []finding
	clock    clockDifference
}

func (d *doctor) add(check, status, advice, detail string, args ...any) {
	if status == "ok" {
		advice = ""
	}
	d.findings = append(d.findings, finding{check, status, fmt.Sprintf(detail, args...), advice})
}

// Doctor checks a deployment from outside its processes (diagnosis) and writes its
// findings to out, with advice. It changes nothing but a row of write_probes. When a check failed it returns
// ErrCheckFailed.
func Doctor(ctx context.Context, source *env.Source, asJSON bool, out io.Writer) (err error) {
	inFolder := !namesADatabase(source)
	runs := !inFolder || isFolderInUse(source)
	if inFolder && runs {
		_ = resolveBroker(source) // without one the process has not come so far
	}
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if inFolder {
		if err := resolveFolder(source); err != nil {
			return err
		}
	}
	cfg := env.Load[doctorConfig](source)
	var servers servers
	if runs {
		servers = loadServers(source, inFolder)
	}
	d := &doctor{now: time.Now}
	d.configuration(source, cfg)
	if !runs {
		d.add("process", "warning", "start it; what it serves was not looked at", "no process runs on the data folder")
	}
	d.databases(ctx, cfg)
	if runs {
		d.servers(ctx, servers, cfg.hostname())
	}
	d.certificates(cfg)
	return d.report(asJSON, out)
}

// isFolderInUse reports whether a process of standalone runs on the data folder.
func isFolderInUse(source *env.Source) bool {
	held, err := lockFolder(env.Load[Config](source).DataDir)
	if err == nil {
		err = held.Close()
		return err != nil
	}
	return true
}

// resolveFolder sets the variables of the source that standalone takes from its data folder, unless the environment
// has them.
func resolveFolder(source *env.Source) error {
	data := folder{path: env.Load[Config](source).DataDir}
	var key apiKeyFile
	if _, err := data.readJSON("apikey.json", &key); err != nil {
		return err
	}
	source.SetDefault("DOORWARD_BASE_URL", key.BaseURL)
	source.SetDefault("DOORWARD_TLS_CERT_FILE", data.join("server.pem"))
	return nil
}

// withTimeout runs a check with the time limit of one check.
func (d *doctor) withTimeout(ctx context.Context, check func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	check(ctx)
}

func (d *doctor) configuration(source *env.Source, cfg doctorConfig) {
	if err := source.Err(); err != nil {
		d.add("configuration", "failed", "correct these variables; doorward --help lists all",
			"%s", strings.ReplaceAll(err.Error(), "\n  ", " | "))
		return
	}
	if _, err := secure.ParseKeyring(cfg.MasterKey); err != nil {
		d.add("configuration", "failed", "set DOORWARD_MASTER_KEY to that of the services", "DOORWARD_MASTER_KEY: %v", err)
		return
	}
	d.add("configuration", "ok", "", "the variables are complete")
}

func (d *doctor) report(asJSON bool, out io.Writer) error {
	failed := false
	for _, f := range d.findings {
		failed = failed || f.Status == "failed"
	}
	if asJSON {
		if err := WriteJSON(out, d.findings); err != nil {
			return err
		}
	} else {
		for _, f := range d.findings {
			_, _ = fmt.Fprintf(out, "%-8s %-22s %s\n", f.Status, f.Check, f.Detail)
			if f.Advice != "" {
				_, _ = fmt.Fprintf(out, "%31s %s\n", "->", f.Advice)
			}
		}
	}
	if failed {
		return ErrCheckFailed
	}
	return nil
}
