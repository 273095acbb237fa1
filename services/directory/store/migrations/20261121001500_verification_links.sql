-- +goose Up

-- A mailed link names its token and not its tenant. A digest of 256 bits is
-- nobody else's, so that one index serves both look-ups.
CREATE INDEX accounts_by_verification_digest ON accounts (verification_digest) INCLUDE (tenant_id) WHERE verification_digest IS NOT NULL;
DROP INDEX accounts_verification;
