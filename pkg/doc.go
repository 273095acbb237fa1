// Package pkg is the module of the packages that the services share. It imports no service: the
// contracts between services are in api, the errors that the product can return in apierr, and each
// other folder has one subject, such as cache, events, field, list, pg, redisclient, rest, rpc, run,
// secure and telemetry. docs/architecture.md has the table "Where is …?".
package pkg
