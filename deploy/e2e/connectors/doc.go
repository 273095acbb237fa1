// Package connectors is the interoperability tests of the connectors to other directories,
// with third-party servers: Keycloak and node-oidc-provider as OpenID providers, Keycloak
// and pysaml2 on both sides of SAML, slapd (OpenLDAP) and Samba (Active Directory) as LDAP
// servers, and the code of the pages in docs/connect as relying parties. Nothing of the
// product is imported.
//
// The package itself starts these servers: each on loopback, in a folder of its
// own, with certificates of one authority (harness.Authority), and ended with the
// test or with the run. The scenarios are the test files; main_test.go starts
// them and the product, in both deployment modes one after the other.
//
// deploy/setup/setup.sh connectors installs what is needed.
package connectors
