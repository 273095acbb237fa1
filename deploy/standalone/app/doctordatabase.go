package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward/deploy/standalone/sealed"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/backuprecord"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
)

// clockDifference is the greatest difference between the clocks of PostgreSQL and of this machine.
type clockDifference struct {
	schema string // empty: none was read
	by     time.Duration
}

// databases checks the schema of each service.
func (d *doctor) databases(ctx context.Context, cfg doctorConfig) {
	ring, _ := secure.ParseKeyring(cfg.MasterKey) // reported as configuration
	for _, schema := range cfg.Databases.sealedSchemas() {
		if schema.Config.URL == "" {
			continue // likewise
		}
		d.withTimeout(ctx, func(ctx context.Context) { d.database(ctx, schema, ring) })
	}
	status := "ok"
	switch {
	case d.clock.schema == "":
		return
	case d.clock.by > clockLimit:
		status = "failed"
	case d.clock.by > clockWarning:
		status = "warning"
	}
	d.add("clock", status, "synchronise the clocks of both machines by NTP",
		"PostgreSQL of %s and this machine differ by %s", d.clock.schema, d.clock.by)
}

// database checks the migrations of a schema, whether it can be written to, the outbox and the master key, and then
// what only the schema of that service has.
func (d *doctor) database(ctx context.Context, schema sealed.Schema, ring *secure.Keyring) {
	name := "database " + schema.Config.Schema
	state, err := pg.ReadMigrations(ctx, schema.Config)
	if err != nil {
		d.add(name, "failed", "start PostgreSQL, or correct DATABASE_URL: docs/runbooks/database-not-writable.md", "%s", pg.Cause(err))
		return
	}
	newer := state.NewerError(schema.Config.Schema)
	switch {
	case len(state.Pending) > 0:
		d.add(name, "failed", "run doorward migrate", "the schema lacks %s", strings.Join(state.Pending, ", "))
		return
	case newer != nil:
		d.add(name, "failed", "run the release that has migrated it", "%v", newer)
		return
	}
	db, err := pg.OpenWithoutMigrating(ctx, schema.Config)
	if err != nil {
		d.add(name, "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
		return
	}
	defer db.Close()
	d.compareClock(ctx, db, schema.Config.Schema)
	if err := errors.Join(db.ProbeWrite(ctx, "doorward doctor"), db.CheckWrites(ctx)); err != nil {
		d.add(name, "failed", "docs/runbooks/database-not-writable.md", "it cannot be written to: %s", pg.Cause(err))
	} else {
		d.outbox(ctx, db, schema.Config.Schema, state)
	}
	if ring != nil {
		d.masterKey(ctx, db, schema, ring)
	}
	switch schema.Config.Schema {
	case "directory":
		d.samlCertificates(ctx, db, schema.Config.Schema)
		d.heldSyncs(ctx, db)
		d.backup(ctx, db)
	case "application":
		d.samlCertificates(ctx, db, schema.Config.Schema)
		d.userAddresses(ctx, db)
	case "idsite":
		d.ownDomains(ctx, db)
	}
}

func (d *doctor) compareClock(ctx context.Context, db *pg.DB, schema string) {
	before := d.now()
	theirs, err := pg.Value[time.Time](ctx, db, `SELECT clock_timestamp()`)
	if err != nil {
		return // so do the other statements
	}
	difference := theirs.Sub(before.Add(d.now().Sub(before) / 2)).Abs().Round(time.Millisecond)
	if d.clock.schema == "" || difference > d.clock.by {
		d.clock = clockDifference{schema, difference}
	}
}

// outbox reports a schema that is well, as far as its outbox is.
func (d *doctor) outbox(ctx context.Context, db *pg.DB, schema string, state pg.MigrationState) {
	name, migrations := "database "+schema, "all migrations done"
	if len(state.Unknown) > 0 {
		d.add(name, "warning", "go on with the newer release, or go back to it", "the schema is newer than this release: it has %s",
			strings.Join(state.Unknown, ", "))
		migrations = "newer"
	}
	has, err := pg.Value[bool](ctx, db, `SELECT to_regclass('outbox') IS NOT NULL`)
	if err != nil {
		d.add(name, "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
		return
	}
	if !has {
		d.add(name, "ok", "", "can be written to, %s", migrations)
		return
	}
	waiting, oldest, err := outbox.New(db, schema, d.now).Waiting(ctx)
	switch {
	case err != nil:
		d.add(name, "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
	case oldest > outboxAgeLimit:
		d.add(name, "failed", "check Kafka, then docs/runbooks/outbox-old.md",
			"%d events wait in the outbox, the oldest for %s", waiting, oldest.Round(time.Second))
	default:
		d.add(name, "ok", "", "can be written to, %s, %d events wait in the outbox", migrations, waiting)
	}
}

// masterKey checks the master keys against the canaries of the schema.
func (d *doctor) masterKey(ctx context.Context, db *pg.DB, schema sealed.Schema, ring *secure.Keyring) {
	name := "master key " + schema.Config.Schema
	err := schema.Verify(ctx, db, ring)
	switch {
	case errors.Is(err, reseal.ErrMasterKey):
		d.add(name, "failed", "set DOORWARD_MASTER_KEY to that of the services, or to that of the backup which was restored", "%v", err)
	case err != nil:
		d.add(name, "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
	default:
		d.add(name, "ok", "", "it opens what is sealed")
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
	const check, maxNamed = "address headers", 10
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

// backup reports how long ago the last backup of the deployment was.
func (d *doctor) backup(ctx context.Context, db *pg.DB) {
	at, err := backuprecord.Last(ctx, db)
	age := d.now().Sub(at).Round(time.Second)
	switch {
	case errors.Is(err, apierr.NotFound):
		d.add("backup", "warning", "make one, and tell of it by doorward backup --record: docs/backup.md", "none is recorded")
	case err != nil:
		d.add("backup", "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
	case age > backupAgeLimit:
		d.add("backup", "warning", "docs/runbooks/backup-old.md", "the last one was %s ago", age)
	default:
		d.add("backup", "ok", "", "the last one was %s ago", age)
	}
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
func (d *doctor) samlCertificates(ctx context.Context, db *pg.DB, schema string) {
	parties, err := pg.Values[[]string](ctx, db, samlCertificateQueries[schema])
	if err != nil {
		d.add("saml", "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
		return
	}
	counts := map[string]int{}
	for _, certificates := range parties {
		counts[saml.CertificateStatus(d.now(), certificates...)]++
	}
	good := true
	for _, state := range []string{saml.CertificateExpired, saml.CertificateNotYetValid, saml.CertificateExpiresSoon} {
		if counts[state] > 0 {
			good = false
			d.add("saml", "warning", "see whose in the log of "+schema+": docs/runbooks/saml-certificate-ends.md",
				"of %d parties of SAML in %s, %d have a certificate that is %s", len(parties), schema, counts[state], state)
		}
	}
	if good {
		d.add("saml", "ok", "", "the certificates of %d parties in %s are valid", len(parties), schema)
	}
}
