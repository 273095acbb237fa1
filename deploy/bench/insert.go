package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/id"
)

// imported is a table like the product's one of accounts: as much in a row, the
// indexes that keep an account unique, and those by which it is sorted and found,
// which whoever offers that has to pay for.
const imported = `
	CREATE EXTENSION pg_trgm;
	CREATE EXTENSION btree_gin;
	CREATE TABLE imported (
		tenant_id uuid NOT NULL, id uuid NOT NULL, directory_id uuid NOT NULL,
		username text NOT NULL, username_folded text COLLATE "C" NOT NULL, email text NOT NULL, email_folded text COLLATE "C" NOT NULL,
		given_name text, given_name_folded text COLLATE "C" NOT NULL, middle_name_folded text COLLATE "C" NOT NULL DEFAULT '',
		surname text, surname_folded text COLLATE "C" NOT NULL, full_name_folded text COLLATE "C" NOT NULL, search text COLLATE "C" NOT NULL, status text NOT NULL, email_verification_status text NOT NULL, password_hash text NOT NULL,
		password_modified_at timestamptz NOT NULL, created_at timestamptz NOT NULL, modified_at timestamptz NOT NULL,
		PRIMARY KEY (tenant_id, id));
	CREATE UNIQUE INDEX ON imported (tenant_id, directory_id, username_folded);
	CREATE UNIQUE INDEX ON imported (tenant_id, directory_id, email_folded);
	CREATE INDEX ON imported (directory_id, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, given_name_folded, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, middle_name_folded, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, surname_folded, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, full_name_folded, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, status, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, email_verification_status, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, created_at, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, modified_at, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported (directory_id, password_modified_at, id) INCLUDE (tenant_id);
	CREATE INDEX ON imported USING gin (directory_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 512)`

// newImport is what both the product and the baseline are sent: an account
// whose password was hashed elsewhere.
type newImport struct {
	Email     string `json:"email"`
	Password  string `json:"password"`
	GivenName string `json:"givenName"`
	Surname   string `json:"surname"`
}

// importedHash is bcrypt of the password of all accounts.
const importedHash = "$2b$10$PgveVd5D7aXoUVIJuyxPce.cKEzECXopK00hhLbhIDdJ8Kamj2U9a"

// insert writes one row, durably, and answers with it.
func (b *baseline) insert(c *fiber.Ctx) error {
	var in newImport
	if err := json.Unmarshal(c.Body(), &in); err != nil {
		return fiber.ErrBadRequest
	}
	now := time.Now()
	self := id.New(now)
	a := account{ID: self.String(), Email: in.Email, GivenName: in.GivenName, Surname: in.Surname, Status: "ENABLED", CreatedAt: now, ModifiedAt: now}
	folded, givenName, surname := strings.ToLower(a.Email), strings.ToLower(a.GivenName), strings.ToLower(a.Surname)
	const statement = `
		INSERT INTO imported (tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name, given_name_folded,
			surname, surname_folded, full_name_folded, search, status, email_verification_status, password_hash, password_modified_at, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	_, err := b.db.Exec(c.UserContext(), statement, b.tenant, self, b.directory, a.Email, folded, a.Email, folded, a.GivenName, givenName,
		a.Surname, surname, givenName+" "+surname, folded+"\n"+givenName+"\n"+surname, a.Status, "UNVERIFIED", in.Password, now, now, now)
	if err != nil {
		return err
	}
	return c.Status(fiber.StatusCreated).JSON(a.view(a.ID))
}
