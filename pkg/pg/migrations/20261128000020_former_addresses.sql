-- +goose Up

-- The base addresses that imported tenants had in the deployments that they come from (package formeraddress).
CREATE TABLE former_addresses (
    tenant_id uuid NOT NULL,
    address text NOT NULL,
    PRIMARY KEY (tenant_id, address)
);
