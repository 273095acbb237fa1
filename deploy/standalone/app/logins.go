package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	application "github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/directory/operator"
	directory "github.com/doorward/doorward/services/directory/store"
)

// maxSince is how far back failed logins are kept.
const maxSince = 30 * 24 * time.Hour

// parseSince reads how far back failed logins are listed.
func parseSince(text string) (time.Duration, error) { return parseWithin(text, maxSince) }

// parseWithin reads a duration of hours, minutes and the like, or of days: 24h, 30d. Above most it is a usage error.
func parseWithin(text string, most time.Duration) (time.Duration, error) {
	since, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n int
		n, err = strconv.Atoi(days)
		since = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || since <= 0 || since > most {
		return 0, UsageError(fmt.Sprintf("--since %s: use a time such as 90m, 24h or 7d, at most %dd", text, int(most.Hours()/24)))
	}
	return since, nil
}

// loginsConfig is what Logins reads.
type loginsConfig struct {
	Directory   secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the directory service"`
	Application secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the application service"`
}

// LoginsVariables declares what Logins reads.
func LoginsVariables(source *env.Source) { source.Declare(new(loginsConfig)) }

// loginLine is a failed login as Logins writes it.
type loginLine struct {
	At          time.Time  `json:"at"`
	Code        int        `json:"code"`
	Limit       *string    `json:"limit"`
	Until       *time.Time `json:"until"`
	Times       int        `json:"times"`
	Application string     `json:"application"`
	Directory   string     `json:"directory"`
	Account     string     `json:"account"`
	Address     string     `json:"address"`
	RequestID   string     `json:"requestId"`
}

// Logins writes the failed logins by password of a login name of a tenant to out, the newest first: of the accounts
// that have the name now. A name that no account has is an error.
func Logins(ctx context.Context, source *env.Source, tenantName, login, since string, asJSON bool, out io.Writer) (err error) {
	within, err := parseSince(since)
	if err != nil {
		return err
	}
	cfg, stop, err := LoadWithDatabase[loginsConfig](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	lines, err := cfg.failedLogins(ctx, tenantName, login, time.Now().Add(-within))
	if err != nil {
		return err
	}
	if asJSON {
		return WriteJSON(out, lines)
	}
	for _, l := range lines {
		limit, until := "-", "-"
		if l.Limit != nil && l.Until != nil {
			limit, until = *l.Limit, l.Until.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintln(out, l.At.Format(time.RFC3339), l.Code, limit, until, word(l.Application),
			cmp.Or(l.Address, "-"), cmp.Or(l.RequestID, "-"))
	}
	return nil
}

// failedLogins returns the failed logins since a time of the accounts of a tenant that have a login name.
func (cfg loginsConfig) failedLogins(ctx context.Context, tenantName, login string, since time.Time) ([]loginLine, error) {
	directories, err := pg.Open(ctx, directory.Config(cfg.Directory))
	if err != nil {
		return nil, err
	}
	defer directories.Close()
	applications, err := pg.Open(ctx, application.Config(cfg.Application))
	if err != nil {
		return nil, err
	}
	defer applications.Close()
	stores, mappings := directory.New(directories, time.Now), application.New(applications, time.Now)
	tenant, err := FindTenant(ctx, stores, tenantName)
	if err != nil {
		return nil, err
	}
	ctx = caller.WithTenant(ctx, tenant.ID)
	accounts, err := stores.AccountsOfLogin(ctx, tenant.ID, login)
	if err == nil && len(accounts) == 0 {
		err = fmt.Errorf("no account of the tenant %s has the login name %q", tenantName, login)
	}
	if err != nil {
		return nil, err
	}
	failed, err := mappings.FailedLogins(ctx, tenant.ID, accounts, since)
	if err != nil {
		return nil, err
	}
	directoryNames := names{of: func(of id.ID) (string, error) {
		found, err := stores.Directory(ctx, tenant.ID, of)
		return found.Name, err
	}}
	applicationNames := names{of: func(of id.ID) (string, error) {
		found, err := mappings.Application(ctx, tenant.ID, of)
		return found.Name, err
	}}
	lines := make([]loginLine, len(failed))
	for i, f := range failed {
		lines[i] = loginLine{f.At.UTC(), f.Code, f.LoginLimit, f.Until, f.Times, applicationNames.name(f.ApplicationID),
			directoryNames.name(f.DirectoryID), f.AccountID.String(), f.Address, f.RequestID}
	}
	return lines, errors.Join(applicationNames.err, directoryNames.err)
}

// names are the names of resources, each read once.
type names struct {
	of   func(id.ID) (string, error)
	read map[id.ID]string
	err  error
}

// name returns the name of a resource, or the id of one that is deleted.
func (n *names) name(of id.ID) string {
	if name, ok := n.read[of]; ok {
		return name
	}
	name, err := n.of(of)
	switch {
	case errors.Is(err, apierr.NotFound):
		name = of.String()
	case err != nil:
		n.err = err
	}
	if n.read == nil {
		n.read = map[id.ID]string{}
	}
	n.read[of] = name
	return name
}

// word returns a name as one word of a line: in quotes where it has a space.
func word(name string) string {
	if strings.ContainsFunc(name, unicode.IsSpace) {
		return strconv.Quote(name)
	}
	return name
}

// FindTenant returns the tenant with a key or an id.
func FindTenant(ctx context.Context, data *directory.Store, name string) (directoryapi.Tenant, error) {
	found, err := operator.FindTenant(ctx, data, name)
	if errors.Is(err, apierr.NotFound) {
		return found, fmt.Errorf("no tenant has the key or the id %q", name)
	}
	return found, err
}
