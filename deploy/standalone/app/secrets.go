package app

import (
	"fmt"

	"github.com/doorward/doorward/pkg/secure"
)

// apiKeyFile is apikey.json: the first API key of the first tenant (bootstrap key).
type apiKeyFile struct {
	ID      string `json:"id"`
	Secret  string `json:"secret"`
	BaseURL string `json:"baseUrl"`
	CAFile  string `json:"caFile"`
}

// secretsFile is secrets.json: the secrets that the processes of a deployment share.
type secretsFile struct {
	Internal string `json:"internalSecret"`
	Master   string `json:"masterKey"`
}

// loadSecrets makes the secrets at the first start, reads them at later ones, and sets
// them for the services. They are on disk before anything is made with them.
func (s *standalone) loadSecrets() error {
	var secrets secretsFile
	exists, err := s.folder.readJSON("secrets.json", &secrets)
	if err != nil {
		return err
	}
	if !exists {
		secrets = secretsFile{Internal: secure.Token(43).Reveal(), Master: secure.NewMasterKey("k1").Reveal()}
		if err := s.folder.writeJSON("secrets.json", secrets); err != nil {
			return err
		}
	}
	s.source.SetDefault("DOORWARD_INTERNAL_SECRET", secrets.Internal)
	s.source.SetDefault("DOORWARD_MASTER_KEY", secrets.Master)

	var base struct {
		URL string `env:"DOORWARD_BASE_URL" help:"public address of the management API with its version"`
	}
	s.source.Load(&base)
	if exists, err = s.folder.readJSON("apikey.json", &s.key); err != nil {
		return err
	}
	if !exists {
		s.key.ID, s.key.Secret = secure.KeyID(), secure.Token(43).Reveal()
	}
	former := s.key
	s.key.BaseURL, s.key.CAFile = base.URL, s.folder.join("ca.pem")
	if !exists || s.key != former {
		if err := s.writeKey(); err != nil {
			return err
		}
	}
	s.source.SetDefault("DOORWARD_BOOTSTRAP_KEY_ID", s.key.ID)
	s.source.SetDefault("DOORWARD_BOOTSTRAP_KEY_SECRET", s.key.Secret)
	return s.ensureCertificates(base.URL)
}

// writeKey writes the key in the forms that clients read: JSON, the properties
// file of SDKs (docs/interface/authentication.md#api-keys), and curl's configuration.
func (s *standalone) writeKey() error {
	properties := fmt.Sprintf("apiKey.id = %s\napiKey.secret = %s\n", s.key.ID, s.key.Secret)
	if err := s.folder.write("apiKey-"+s.key.ID+".properties", []byte(properties)); err != nil {
		return err
	}
	curl := fmt.Sprintf("user = \"%s:%s\"\ncacert = \"%s\"\n", s.key.ID, s.key.Secret, s.key.CAFile)
	if err := s.folder.write("curl.conf", []byte(curl)); err != nil {
		return err
	}
	return s.folder.writeJSON("apikey.json", s.key)
}
