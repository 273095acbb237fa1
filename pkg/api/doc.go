// Package api holds the contracts between services, one folder each: the types and the
// interface (api.go), and its HTTP client and server (client.gen.go), which make generate
// writes. Only the service and the client implement a contract, and contract_test.go proves of
// each that they behave alike.
//
// A method exists because a peer calls it. It takes a request and returns an answer, both
// values; it names the errors it returns; it may be repeated, because a request that creates
// something carries the id of what it creates. Every request names its tenant, and an answer
// never leaves it.
package api
