package app

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/saml"
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

	userAddressWindow = 7 * 24 * time.Hour // in which a login without the address of the user is reported
)

// doctorConfig is what Doctor connects to.
type doctorConfig struct {
	Databases   databases
	MasterKey   secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
	Secret      secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true" help:"secret that all processes of the deployment share"`
	Certificate string        `env:"DOORWARD_TLS_CERT" help:"certificate chain in PEM"`
}

// serversConfig is separate from doctorConfig, because standalone has Redis and Kafka of its own.
type serversConfig struct {
	Redis redisclient.Config
	Kafka outbox.Config
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
}

func (d *doctor) add(check, status, advice, detail string, args ...any) {
	if status == "ok" {
		advice = ""
	}
	d.findings = append(d.findings, finding{check, status, fmt.Sprintf(detail, args...), advice})
}

// Doctor checks a deployment from outside its processes (diagnosis) and writes its
// findings to out, with advice. It changes nothing. When a check failed it returns
// ErrCheckFailed.
func Doctor(ctx context.Context, source *env.Source, asJSON bool, out io.Writer) (err error) {
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var cfg doctorConfig
	source.Load(&cfg)
	d := &doctor{now: time.Now}
	d.configuration(source, cfg)
	for _, schema := range cfg.Databases.configs() {
		d.withTimeout(ctx, func(ctx context.Context) { d.database(ctx, schema) })
	}
	var servers serversConfig
	if source.Has("REDIS_URL") {
		source.Load(&servers.Redis)
		d.withTimeout(ctx, func(ctx context.Context) { d.redis(ctx, servers.Redis) })
	}
	if source.Has("KAFKA_BROKERS") {
		source.Load(&servers.Kafka)
		d.withTimeout(ctx, func(ctx context.Context) { d.kafka(ctx, servers.Kafka) })
	}
	if cfg.Certificate != "" {
		d.certificate(cfg.Certificate)
	}
	return d.report(asJSON, out)
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

// database checks the connection, the migrations, the clock and the outbox of a service.
func (d *doctor) database(ctx context.Context, schema pg.Config) {
	name := "database " + schema.Schema
	if schema.URL == "" {
		return // reported as configuration
	}
	state, err := pg.ReadMigrations(ctx, schema)
	if err != nil {
		d.add(name, "failed", "start PostgreSQL, correct DATABASE_URL, or run doorward migrate where there is no schema yet",
			"%v", err)
		return
	}
	if len(state.Pending) > 0 {
		d.add(name, "failed", "run doorward migrate", "the schema lacks %s", strings.Join(state.Pending, ", "))
		return
	}
	db, err := pg.OpenWithoutMigrating(ctx, schema)
	if err != nil {
		d.add(name, "failed", "see what PostgreSQL logs", "%v", err)
		return
	}
	defer db.Close()
	if schema.Schema == "application" {
		d.userAddresses(ctx, db)
	}
	if err := db.CheckWrites(ctx); err != nil {
		d.add(name, "failed", "free space on its disk, or connect to the primary; see what PostgreSQL logs",
			"it cannot be written to: %v", err)
		return
	}
	before := d.now()
	theirs, err := pg.Value[time.Time](ctx, db, `SELECT clock_timestamp()`)
	if err != nil {
		d.add(name, "failed", "see what PostgreSQL logs", "%v", err)
		return
	}
	difference := theirs.Sub(before.Add(d.now().Sub(before) / 2)).Abs().Round(time.Millisecond)
	switch {
	case difference > clockLimit:
		d.add("clock", "failed", "synchronise the clocks of both machines by NTP",
			"PostgreSQL of %s and this machine differ by %s", schema.Schema, difference)
	case difference > clockWarning:
		d.add("clock", "warning", "synchronise the clocks of both machines by NTP",
			"PostgreSQL of %s and this machine differ by %s", schema.Schema, difference)
	}
	if query := samlCertificateQueries[schema.Schema]; query != "" {
		parties, err := pg.Values[[]string](ctx, db, query)
		if err != nil {
			d.add(name, "failed", "see what PostgreSQL logs", "%v", err)
			return
		}
		d.samlCertificates(schema.Schema, parties)
	}
	if schema.Schema == "directory" {
		d.heldSyncs(ctx, db)
	}
	if has, err := pg.Value[bool](ctx, db, `SELECT to_regclass('outbox') IS NOT NULL`); err != nil || !has {
		d.add(name, "ok", "", "answers, all migrations done")
		return
	}
	waiting, oldest, err := outbox.New(db, schema.Schema, d.now).Waiting(ctx)
	switch {
	case err != nil:
		d.add(name, "failed", "see what PostgreSQL logs", "%v", err)
	case oldest > outboxAgeLimit:
		d.add(name, "failed", "check Kafka, then docs/runbooks/outbox-old.md",
			"%d events wait in the outbox, the oldest for %s", waiting, oldest.Round(time.Second))
	default:
		d.add(name, "ok", "", "answers, all migrations done, %d events wait in the outbox", waiting)
	}
}

// unaddressedApplication is an application whose logins came without the address of the user.
type unaddressedApplication struct {
	Name string
	ID   id.ID
}

// userAddresses warns of the applications whose logins of the last week came, by an API key, without
// the address of the user.
func (d *doctor) userAddresses(ctx context.Context, db *pg.DB) {
	const check, maxNamed = "user addresses", 10
	found, err := pg.All[unaddressedApplication](ctx, db, `SELECT a.name, a.id FROM missing_user_addresses m
		JOIN applications a ON a.tenant_id = m.tenant_id AND a.id = m.application_id WHERE m.seen_at > $1 ORDER BY m.seen_at DESC LIMIT $2`,
		d.now().Add(-userAddressWindow), maxNamed)
	if err != nil {
		d.add(check, "failed", "see what PostgreSQL logs", "%v", err)
		return
	}
	var names []string
	for _, a := range found {
		names = append(names, fmt.Sprintf("%q (%s)", a.Name, a.ID))
	}
	if len(names) == 0 {
		d.add(check, "ok", "", "every application that logs users in by its API key names their addresses")
		return
	}
	d.add(check, "warning", "send the header Service-User-Address with each login: docs/interface/limits.md",
		"failed logins are counted for the whole application, because its calls do not name the address of the user: %s",
		strings.Join(names, ", "))
}

// heldSyncs reports the agents of LDAP directories whose last sync was held by the brake.
func (d *doctor) heldSyncs(ctx context.Context, db *pg.DB) {
	held, err := pg.Values[id.ID](ctx, db, `SELECT a.id FROM agents a WHERE (
		SELECT held FROM agent_syncs y WHERE y.tenant_id = a.tenant_id AND y.agent_id = a.id
		ORDER BY completed_at DESC NULLS LAST, number DESC LIMIT 1) > 0 ORDER BY a.id`)
	if err != nil {
		d.add("held syncs", "failed", "see what PostgreSQL logs", "%v", err)
		return
	}
	agents := make([]string, len(held))
	for i, agent := range held {
		agents[i] = agent.String()
	}
	if len(agents) == 0 {
		d.add("held syncs", "ok", "", "none")
		return
	}
	d.add("held syncs", "warning", "docs/runbooks/sync-held.md",
		"the syncs of these agents would make too many accounts absent: %s",
		strings.Join(agents, ", "))
}

// samlCertificateQueries read the certificates of each SAML party, by schema: of identity providers and of
// service providers.
var samlCertificateQueries = map[string]string{
	"directory": `SELECT array_remove(ARRAY[settings->>'encodedX509SigningCert', settings->>'encodedX509SigningCertNext'], NULL) ||
		ARRAY(SELECT jsonb_array_elements_text(coalesce(settings->'metadataCertificates', '[]')))
		FROM providers WHERE settings ? 'encodedX509SigningCert'`,
	"application": `SELECT ARRAY[encoded_x509_certificate] FROM saml_service_providers WHERE encoded_x509_certificate IS NOT NULL`,
}

// samlCertificates reports the SAML parties whose certificates are not valid, or not for much longer. Their
// keys are used all the same, so that no state is a failure.
func (d *doctor) samlCertificates(schema string, parties [][]string) {
	counts := map[string]int{}
	for _, certificates := range parties {
		counts[saml.CertificateStatus(d.now(), certificates...)]++
	}
	for _, state := range []string{saml.CertificateExpired, saml.CertificateNotYetValid, saml.CertificateExpiresSoon} {
		if counts[state] > 0 {
			d.add("SAML certificates", "warning", "see whose in the log of "+schema+": docs/runbooks/saml-certificate-ends.md",
				"of %d parties of SAML in %s, %d have a certificate that is %s", len(parties), schema, counts[state], state)
		}
	}
}

func (d *doctor) redis(ctx context.Context, cfg redisclient.Config) {
	client, err := redisclient.Open(cfg)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = client.Ping(ctx).Err()
	}
	if err != nil {
		d.add("redis", "failed", "start Redis, or correct REDIS_URL; until then each gateway applies the limits alone", "%v",
			err)
		return
	}
	d.add("redis", "ok", "", "answers")
}

func (d *doctor) kafka(ctx context.Context, cfg outbox.Config) {
	inspector, err := outbox.NewInspector(cfg)
	if err != nil {
		d.add("kafka", "failed", "correct the variables KAFKA_…", "%v", err)
		return
	}
	defer inspector.Close()
	letters, err := inspector.DeadLetters(ctx)
	if err != nil {
		d.add("kafka", "failed", "start the brokers, or correct the variables KAFKA_…; until then events wait in the outboxes", "%v", err)
		return
	}
	d.add("kafka", "ok", "", "answers")
	if len(letters) > 0 {
		d.add("dead letters", "failed",
			"doorward deadletters list, then retry or drop: docs/runbooks/dead-letters.md", "%d events could not be handled", len(letters))
	} else {
		d.add("dead letters", "ok", "", "none")
	}
	for _, service := range []string{"directory", "application", "oauth", "mfa", "notification"} {
		lag, err := inspector.Lag(ctx, service)
		switch {
		case err != nil:
			d.add("lag "+service, "failed", "see what the brokers log", "%v", err)
		case lag > consumerLagHigh:
			d.add("lag "+service, "failed", "docs/runbooks/consumer-lag.md", "%d events are still to be handled", lag)
		default:
			d.add("lag "+service, "ok", "", "%d events are still to be handled", lag)
		}
	}
}

// certificate checks each certificate of a chain.
func (d *doctor) certificate(chain string) {
	rest := []byte(chain)
	var firstExpiry time.Time
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			d.add("certificate", "failed", "set DOORWARD_TLS_CERT to a chain in PEM", "%v", err)
			return
		}
		if firstExpiry.IsZero() || certificate.NotAfter.Before(firstExpiry) {
			firstExpiry = certificate.NotAfter
		}
	}
	if firstExpiry.IsZero() {
		d.add("certificate", "failed", "set DOORWARD_TLS_CERT to a chain in PEM", "it holds no certificate")
		return
	}
	remaining := firstExpiry.Sub(d.now())
	status := "ok"
	switch {
	case remaining <= 0:
		status = "failed"
	case remaining < expiryWarning:
		status = "warning"
	}
	d.add("certificate", status, "renew it: docs/runbooks/certificate-ends.md", "good until %s",
		firstExpiry.UTC().Format(time.DateOnly))
}

func (d *doctor) report(asJSON bool, out io.Writer) error {
	failed := false
	for _, f := range d.findings {
		failed = failed || f.Status == "failed"
	}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(d.findings); err != nil {
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
