package app

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	application "github.com/doorward/doorward/services/application/app"
)

// rotateEnv makes this binary a process that rotates the keys of DATABASE_URL.
const rotateEnv = "ROTATE_KEYS"

// rotateInProcess is what the binary does then.
func rotateInProcess() int {
	source := env.New([]string{"DATABASE_URL=" + os.Getenv("DATABASE_URL"), "DOORWARD_MASTER_KEY=" + os.Getenv("DOORWARD_MASTER_KEY")})
	if err := RotateKeys(context.Background(), source, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestARotationThatIsKilledGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	const rows = 2500
	url := pgtest.New(t, migrated)
	former, active := secure.NewMasterKey("k1"), secure.NewMasterKey("k2")
	both := secure.Secret(active.Reveal() + "," + former.Reveal())
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()

	column := application.Sealed[1]
	ring, err := secure.ParseKeyring(former)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[id.ID]string{}
	var values [][]any
	for n := range rows {
		tenant := id.New(time.Now())
		secrets[tenant] = fmt.Sprint("secret ", n)
		values = append(values, []any{tenant, ring.Seal(secure.Secret(secrets[tenant]), column.Purpose(tenant)), time.Now()})
	}
	table := pgx.Identifier{"application", column.Table}
	if _, err := conn.CopyFrom(t.Context(), table, []string{column.Key, column.Column, "created_at"}, pgx.CopyFromRows(values)); err != nil {
		t.Fatal(err)
	}

	// A locked row holds the third batch up, in whose transaction the process is killed.
	lock, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `SELECT 1 FROM application.saml_relay_keys WHERE tenant_id = $1 FOR UPDATE`, values[rows-1][0]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0])
	process.Env = append(os.Environ(), rotateEnv+"=1", "DATABASE_URL="+url, "DOORWARD_MASTER_KEY="+both.Reveal())
	process.Stderr = t.Output()
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(out), ""
	for said != "application: 2000 of 2500" && lines.Scan() {
		said = lines.Text()
	}
	_ = process.Process.Kill()
	if err := process.Wait(); err == nil || said != "application: 2000 of 2500" {
		t.Fatalf("the process says %q last and ended with %v", said, err)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	var rest bytes.Buffer
	if err := RotateKeys(t.Context(), env.New([]string{"DATABASE_URL=" + url, "DOORWARD_MASTER_KEY=" + both.Reveal()}), &rest); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(rest.String(), "application: 500 of 500\nall secrets are sealed under the first key") {
		t.Errorf("the second call says\n%s", rest.String())
	}
	if ring, err = secure.ParseKeyring(active); err != nil {
		t.Fatal(err)
	}
	found, err := conn.Query(t.Context(), `SELECT tenant_id, key_sealed FROM application.saml_relay_keys`)
	if err != nil {
		t.Fatal(err)
	}
	var tenant id.ID
	var sealed []byte
	if _, err := pgx.ForEachRow(found, []any{&tenant, &sealed}, func() error {
		secret, err := ring.Open(sealed, column.Purpose(tenant))
		if err == nil && secret.Reveal() != secrets[tenant] {
			err = fmt.Errorf("the secret of %s has changed", tenant)
		}
		delete(secrets, tenant)
		return err
	}); err != nil || len(secrets) > 0 {
		t.Errorf("%d secrets are gone, %v", len(secrets), err)
	}
}
