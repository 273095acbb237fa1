package main

import (
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/id"
)

// tokens are tables like the product's two of tokens, with their indexes.
const tokens = `
	CREATE TABLE refresh_token (
		tenant_id uuid NOT NULL, id uuid NOT NULL, application_id uuid NOT NULL, account_id uuid NOT NULL, key_id text NOT NULL,
		issued_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, id));
	CREATE INDEX ON refresh_token (tenant_id, account_id, id);
	CREATE INDEX ON refresh_token (tenant_id, application_id);
	CREATE INDEX ON refresh_token (expires_at);
	CREATE TABLE access_token (
		tenant_id uuid NOT NULL, id uuid NOT NULL, application_id uuid NOT NULL, account_id uuid NOT NULL, key_id text NOT NULL, refresh_id uuid,
		issued_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, id));
	CREATE INDEX ON access_token (tenant_id, account_id, id);
	CREATE INDEX ON access_token (tenant_id, application_id);
	CREATE INDEX ON access_token (expires_at)`

// issued is an answer of the size and the shape of that to a grant.
type issued struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
}

// pair writes two rows in one transaction, durably, and answers with their ids.
func (b *baseline) pair(c *fiber.Ctx) error {
	if c.FormValue("grant_type") == "" {
		return fiber.ErrBadRequest
	}
	ctx, now := c.UserContext(), time.Now()
	access, refresh, application, holder := id.New(now), id.New(now), b.directory, id.New(now)
	err := pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO refresh_token (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, b.tenant, refresh, application, holder, "KEY", now, now.Add(time.Hour)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO access_token (tenant_id, id, application_id, account_id, key_id, refresh_id, issued_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, b.tenant, access, application, holder, "KEY", refresh, now, now.Add(time.Hour))
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(issued{Access: access.String(), Refresh: refresh.String(), Type: "Bearer", Expires: 3600})
}
