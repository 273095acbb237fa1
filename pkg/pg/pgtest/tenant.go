package pgtest

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// allowedAcrossTenants are the patterns of statements that may use tables with a tenant_id without a
// condition on it, each with its reason.
var allowedAcrossTenants = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`FROM api_key_routes r JOIN api_keys`), "a key leads to its tenant"},
	{regexp.MustCompile(`_at <=? \$1\b.* LIMIT |\w+ >= \$1 AND \w+ < \$2.* LIMIT `),
		"a worker takes a batch of all tenants by age"},
	{regexp.MustCompile(`FROM outbox (ORDER BY seq )?LIMIT (\$1|1)`),
		"the relay sends, and counts, the events of all tenants in their order"},
	{regexp.MustCompile(`^SELECT count\(\*\) .*FROM \(SELECT created_at FROM deliveries ` +
		`WHERE finished_at IS NULL AND kind = ANY \(\$2\) LIMIT \$1\) AS waiting$`),
		"a metric counts the deliveries of all tenants"},
	{regexp.MustCompile(`^SELECT count\(\*\) FROM smtp_servers WHERE opened_at IS NOT NULL AND status = 'ENABLED'$`),
		"a metric counts the circuit breakers of all tenants"},
	{regexp.MustCompile(`SELECT tenant_id FROM accounts WHERE verification_digest = \$1`),
		"a mailed link names its token alone"},
	{regexp.MustCompile(`SELECT tenant_id FROM sign_ups WHERE digest = \$1`), "a mailed link names its token alone"},
	{regexp.MustCompile(`SELECT tenant_id FROM id_site_domains WHERE domain = \$1`), "a host leads to its tenant"},
	{regexp.MustCompile(`FROM id_sites WHERE announced_domain IS DISTINCT FROM domain_name ORDER BY`),
		"a worker takes a batch of all tenants"},
	{regexp.MustCompile(`FROM applications a WHERE a\.id = \$1$`),
		"the address of an OpenID provider leads to its tenant"},
	{regexp.MustCompile(`^SELECT DISTINCT address FROM former_addresses$`),
		"a process accepts the former addresses of all tenants"},
	{regexp.MustCompile(`FROM applications a WHERE a\.name_folded = \$1 LIMIT 2$`),
		"an operator names an application and no tenant"},
	{regexp.MustCompile(`FROM tenants t WHERE t\.status`),
		"an operator lists the tenants of the deployment, and a worker those whose grace has ended"},
	{regexp.MustCompile(`FROM dns_label_routes WHERE label = \$1`), "a host leads to its tenant"},
	{regexp.MustCompile(`SELECT count\(\*\) FROM sign_ups WHERE (email_folded|address_hash) = \$1 AND`),
		"a sign-up has no tenant yet"},
	{regexp.MustCompile(`substring\(\w+ FOR length\(\$1::bytea\)\) <> \$1::bytea LIMIT \$2 FOR UPDATE$`),
		"the key rotation takes a batch of all tenants by the master key of their sealed values"},
	{regexp.MustCompile(`^SELECT \w+ AS key, \w+ AS value FROM \w+ WHERE \w+ IS NOT NULL LIMIT 1$`),
		"the check of the master key opens a value of any tenant"},
}

var (
	blanks = regexp.MustCompile(`\s+`)
	// columns of a new row, a comparison, a comparison of tuples, a join by USING.
	tenantCondition = regexp.MustCompile(`(?i)INSERT INTO \w+( AS \w+)? \([^)]*\btenant_id\b` +
		`|\btenant_id(::\w+)? ?(=|<>|IN\b|IS\b)|= ?\w*\.?tenant_id\b` +
		`|\((\w+\.)?tenant_id\b[^()]*\) ?(=|<|>|IN\b)|USING \(tenant_id\b|ON CONFLICT \(tenant_id\b`)
)

// tenantTracer checks tenant isolation in SQL: it records the statements of the product that use a
// table with a tenant_id and have no condition on it. It ignores the statements of the tests themselves.
type tenantTracer struct {
	tables *regexp.Regexp // tables with a tenant_id; nil for none

	mu       sync.Mutex
	known    map[string]bool
	unscoped []string
}

// setTables sets the tables with a tenant_id.
func (t *tenantTracer) setTables(tables []string) {
	if len(tables) > 0 {
		t.tables = regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE|USING|TABLE|,) (ONLY )?(` +
			strings.Join(tables, "|") + `)\b`)
	}
}

// isScoped reports whether a statement has a condition on tenant_id, or needs none.
func (t *tenantTracer) isScoped(sql string) bool {
	if t.tables == nil {
		return true
	}
	sql = blanks.ReplaceAllString(sql, " ")
	if !t.tables.MatchString(sql) || tenantCondition.MatchString(sql) {
		return true
	}
	for _, allowed := range allowedAcrossTenants {
		if allowed.pattern.MatchString(sql) {
			return true
		}
	}
	return false
}

func (t *tenantTracer) check(sql string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[sql] {
		return
	}
	if t.isScoped(sql) {
		t.known[sql] = true
	} else if !isOfTest() {
		t.known[sql] = true
		t.unscoped = append(t.unscoped, sql)
	}
}

// isOfTest reports whether a test, or a package of tests, runs the statement.
func isOfTest() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		switch {
		case strings.Contains(frame.File, "/pgx/v5"), strings.Contains(frame.File, "/pkg/pg/"),
			strings.Contains(frame.File, "doorward/pkg/pg/"):
		default:
			return strings.HasSuffix(frame.File, "_test.go") || strings.Contains(frame.File, "test/")
		}
		if !more {
			return false
		}
	}
}

// report fails the test for each recorded statement.
func (t *tenantTracer) report(tb testing.TB) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sql := range t.unscoped {
		tb.Errorf("a statement touches a table of tenants and does not compare tenant_id:\n%s", sql)
	}
}

// TraceQueryStart checks a statement.
func (t *tenantTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.check(data.SQL)
	return ctx
}

// TraceQueryEnd does nothing.
func (t *tenantTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart checks the statements of a batch.
func (t *tenantTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		t.check(query.SQL)
	}
	return ctx
}

// TraceBatchQuery does nothing.
func (t *tenantTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does nothing.
func (t *tenantTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
