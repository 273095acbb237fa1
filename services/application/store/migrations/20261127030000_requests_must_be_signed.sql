-- +goose Up

-- Whether requests of the service provider must be signed. NULL: if it has a certificate.
ALTER TABLE saml_service_providers ADD COLUMN requests_must_be_signed boolean;
