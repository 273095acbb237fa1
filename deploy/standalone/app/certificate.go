package app

import (
	"fmt"
	"net/url"

	"github.com/doorward/doorward/deploy/standalone/devcert"
)

// ensureCertificates makes the certificates of the data folder for the host of the base URL (package devcert). With
// DOORWARD_TLS_CERT or DOORWARD_TLS_KEY it makes nothing.
func (s *standalone) ensureCertificates(baseURL string) error {
	if s.source.Has("DOORWARD_TLS_CERT") || s.source.Has("DOORWARD_TLS_KEY") {
		return nil
	}
	address, err := url.Parse(baseURL)
	if err != nil {
		return fmt.Errorf("read DOORWARD_BASE_URL: %w", err)
	}
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if host := address.Hostname(); host != "localhost" {
		hosts = append(hosts, host)
	}
	// Browsers open the hosted pages and the Client APIs under names of their own.
	var domains struct {
		IDSite    string `env:"DOORWARD_IDSITE_SUFFIX" default:"localhost"`
		ClientAPI string `env:"DOORWARD_CLIENT_API_SUFFIX" default:"apps.localhost"`
	}
	s.source.Load(&domains)
	hosts = append(hosts, "*.id."+domains.IDSite, "*."+domains.ClientAPI)
	made := devcert.Folder{Path: s.folder.join(""), Write: s.folder.write}
	if err := made.Ensure(address.Hostname(), hosts); err != nil {
		return err
	}
	s.source.SetDefault("DOORWARD_TLS_CERT_FILE", s.folder.join("server.pem"))
	s.source.SetDefault("DOORWARD_TLS_KEY_FILE", s.folder.join("server-key.pem"))
	return nil
}
