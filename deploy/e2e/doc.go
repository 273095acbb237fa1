// Package e2e tries the whole product from outside, as a stranger would: over
// HTTPS, with an API key and a CA file, and nothing else. It knows no package
// of the product.
//
// This package is the client that the scenarios speak with; the scenarios are
// its test files, and they run against any deployment. How a deployment is
// started is the business of package harness. Two more packages hold what can
// only be tried on processes of one's own: standalone (crash, stop, several
// side by side) and distributed (replicas and the broker killed under load).
package e2e
