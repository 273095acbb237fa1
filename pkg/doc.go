// Package pkg is the module of everything that the services share. It knows
// no service: the contracts between services are under api, the errors that
// the product can return under apierr, and each other folder is one noun
// (counter, customdata, events, fairqueue, field, href, id, list, macro, pg, reseal, rest, rpc, run, secure,
// telemetry).
package pkg
