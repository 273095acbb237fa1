package app

import (
	"fmt"

	"github.com/doorward/doorward/pkg/secure"
)

// key is apikey.json: the first API key of the first tenant.
type key struct {
	ID      string `json:"id"`
	Secret  string `json:"secret"`
	BaseURL string `json:"baseUrl"`
	CAFile  string `json:"caFile"`
}

// shared is secrets.json: what the processes of a deployment share.
type shared struct {
	Internal string `json:"internalSecret"`
	Master   string `json:"masterKey"`
}

// secrets makes the secrets at the first start and hands them to the services.
// They are on disk before anything is made with them.
func (s *standalone) secrets() error {
	var own shared
	known, err := s.folder.readJSON("secrets.json", &own)
	if err != nil {
		return err
	}
	if !known {
		own = shared{Internal: secure.Token(43).Reveal(), Master: secure.NewMasterKey("k1").Reveal()}
		if err := s.folder.writeJSON("secrets.json", own); err != nil {
			return err
		}
	}
	s.source.Set("DOORWARD_INTERNAL_SECRET", own.Internal)
	s.source.Set("DOORWARD_MASTER_KEY", own.Master)

	var base struct {
		URL string `env:"DOORWARD_BASE_URL" help:"public address of the management API with its version"`
	}
	s.source.Load(&base)
	if known, err = s.folder.readJSON("apikey.json", &s.key); err != nil {
		return err
	}
	if !known {
		s.key.ID, s.key.Secret = secure.KeyID(), secure.Token(43).Reveal()
	}
	former := s.key
	s.key.BaseURL, s.key.CAFile = base.URL, s.folder.join("ca.pem")
	if !known || s.key != former {
		if err := s.writeKey(); err != nil {
			return err
		}
	}
	s.source.Set("DOORWARD_BOOTSTRAP_KEY_ID", s.key.ID)
	s.source.Set("DOORWARD_BOOTSTRAP_KEY_SECRET", s.key.Secret)
	return s.certify(base.URL)
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
