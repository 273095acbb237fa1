package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Key is the content of apikey.json, which a deployment writes for its first user: an API
// key, the address of the deployment, and the file of its certificate authority.
type Key struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`

	// BaseURL is the management address with its version segment and without
	// a slash at the end, for example https://localhost:8443/v1.
	BaseURL string `json:"baseUrl"`

	// CAFile is a PEM file; empty means the certificate authorities of the
	// machine.
	CAFile string `json:"caFile"`
}

// ReadKey reads an apikey.json. It refuses one that lacks a part, so that a
// half-written file is not mistaken for a key.
func ReadKey(path string) (Key, error) {
	var key Key
	if err := ReadJSON(path, &key); err != nil {
		return key, fmt.Errorf("read the API key: %w", err)
	}
	if key.ID == "" || key.Secret == "" || key.BaseURL == "" {
		return key, fmt.Errorf("the API key in %s lacks id, secret or baseUrl", path)
	}
	base, err := url.Parse(key.BaseURL)
	if err != nil || base.Host == "" {
		return key, fmt.Errorf("the baseUrl %q in %s is not an absolute address", key.BaseURL, path)
	}
	key.BaseURL = strings.TrimSuffix(key.BaseURL, "/")
	return key, nil
}

// Write puts the key into a file that only its owner reads.
func (k Key) Write(path string) error { return WriteJSON(path, k) }

// HostURL is the address without the version segment, below which the mailbox page, the
// hosted pages and the error pages are.
func (k Key) HostURL() string {
	return strings.TrimSuffix(k.BaseURL, "/v1")
}

// ReadJSON reads a file.
func ReadJSON(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// WriteJSON writes a file that only its owner reads.
func WriteJSON(path string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}
