-- +goose Up

-- Programs that may be logged in to by SAML, with the service as their identity
-- provider. An entity id is compared byte for byte, so its index has no folding.
CREATE TABLE saml_service_providers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text,
    name_folded text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C" NOT NULL,
    assertion_consumer_service_url text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    name_id_format text NOT NULL,
    encoded_x509_certificate text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, entity_id)
);
