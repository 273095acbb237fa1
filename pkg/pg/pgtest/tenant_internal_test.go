package pgtest

import "testing"

func TestAStatementOfATenantsTableComparesTheTenant(t *testing.T) {
	tracer := &tenantTracer{known: map[string]bool{}}
	tracer.setTables([]string{"accounts", "groups"})
	for sql, want := range map[string]bool{
		`SELECT a.tenant_id, a.id FROM accounts a WHERE a.id = $1`:                                  false,
		`SELECT a.tenant_id, a.id FROM accounts a WHERE a.tenant_id = $1 AND a.id = $2`:             true,
		`SELECT 1 FROM directories d JOIN accounts a ON a.directory_id = d.id`:                      false,
		`SELECT 1 FROM directories d JOIN accounts a ON a.tenant_id = d.tenant_id`:                  true,
		`UPDATE accounts SET status = $2 WHERE id = $1`:                                             false,
		`UPDATE accounts SET status = $3 WHERE tenant_id = $1 AND id = $2`:                          true,
		`DELETE FROM groups WHERE id = $1 RETURNING tenant_id`:                                      false,
		"DELETE FROM groups\n\t\tWHERE (tenant_id, id) IN (SELECT $1, $2)":                          true,
		`INSERT INTO accounts (id, status) VALUES ($1, $2)`:                                         false,
		`INSERT INTO accounts (tenant_id, id, status) VALUES ($1, $2, $3)`:                          true,
		`SELECT count(*) FROM migrations`:                                                           true,
		`SELECT accounts FROM migrations`:                                                           true,
		`DELETE FROM accounts WHERE removed_at < $1`:                                                false,
		`DELETE FROM accounts WHERE id IN (SELECT id FROM accounts WHERE removed_at < $1 LIMIT $2)`: true, // a purge
		`SELECT id FROM accounts WHERE removed_at < $2 LIMIT $1`:                                    false,
	} {
		if got := tracer.isScoped(sql); got != want {
			t.Errorf("%s: %t, want %t", sql, got, want)
		}
	}
}
