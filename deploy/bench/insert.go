package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/id"
)

// imported is a table like the product's one of accounts: as much in a row, and
// the indexes that keep an account unique.
const imported = `
	CREATE TABLE imported (
		tenant_id uuid NOT NULL, id uuid NOT NULL, directory_id uuid NOT NULL,
		username text NOT NULL, username_folded text COLLATE "C" NOT NULL, email text NOT NULL, email_folded text COLLATE "C" NOT NULL,
		given_name text, surname text, status text NOT NULL, email_verification_status text NOT NULL, password_hash text NOT NULL,
		password_modified_at timestamptz NOT NULL, created_at timestamptz NOT NULL, modified_at timestamptz NOT NULL,
		PRIMARY KEY (tenant_id, id));
	CREATE UNIQUE INDEX ON imported (tenant_id, directory_id, username_folded);
	CREATE UNIQUE INDEX ON imported (tenant_id, directory_id, email_folded)`

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
	folded := strings.ToLower(a.Email)
	const statement = `
		INSERT INTO imported (tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name, surname,
			status, email_verification_status, password_hash, password_modified_at, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
	_, err := b.db.Exec(c.UserContext(), statement, b.tenant, self, b.directory, a.Email, folded, a.Email, folded, a.GivenName, a.Surname,
		a.Status, "UNVERIFIED", in.Password, now, now, now)
	if err != nil {
		return err
	}
	return c.Status(fiber.StatusCreated).JSON(a.view(a.ID))
}
