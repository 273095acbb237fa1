-- +goose Up

-- What operators have done with the deployment by commands. A row stays when its tenant goes: the column is not
-- tenant_id, whose rows are those of the tenant.
CREATE TABLE operator_events (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL,
    command text NOT NULL,
    operator text NOT NULL,
    reason text,
    of_tenant uuid,
    outcome text NOT NULL -- DONE or REFUSED
);
CREATE INDEX operator_events_by_age ON operator_events (at);
CREATE INDEX operator_events_of_tenant ON operator_events (of_tenant, at);
