// Package connectors tries the connectors to other directories against
// implementations that are not ours: Keycloak and node-oidc-provider as OpenID
// providers, Keycloak and pysaml2 on both sides of SAML, slapd and Samba as
// directory servers. Nothing of the product is imported.
//
// The package itself starts these servers: each on loopback, in a folder of its
// own, with certificates of one authority (harness.Authority), and ended with the
// test or with the run. The scenarios are the test files; main_test.go starts
// them and the product, in both deployment modes one after the other.
//
// deploy/setup/setup.sh connectors installs what is needed.
package connectors
