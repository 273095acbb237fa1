-- +goose Up

-- How an identity provider signs. A change of it makes a new key, whose
-- certificate has an address of its own; the first certificate has that of the
-- identity provider.
ALTER TABLE saml_identity_providers
    ADD COLUMN signature_algorithm text NOT NULL DEFAULT 'RSA-SHA256',
    ADD COLUMN certificate_id uuid;
UPDATE saml_identity_providers SET certificate_id = id;
ALTER TABLE saml_identity_providers
    ALTER COLUMN certificate_id SET NOT NULL,
    ADD CONSTRAINT saml_certificate UNIQUE (tenant_id, certificate_id);
