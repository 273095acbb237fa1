// Package cells chooses the deployment (cell) that a request belongs to, where several share one address
// (docs/cells.md). A reverse proxy asks it about each request (forward authentication, handler.go). names.go
// finds in a request what tells its tenant, directory.go which cell has that tenant, and cell.go asks a cell
// at its interface for operators, /operator/v1.
package cells

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config is the file of the cells.
type Config struct {
	Cells   []CellConfig `json:"cells"`
	Default string       `json:"default"` // cell of a request whose tenant none has
}

// CellConfig is one deployment.
type CellConfig struct {
	Name     string `json:"name"`
	Address  string `json:"address"`  // where the proxy sends its requests, as the header X-Doorward-Cell-Address has it
	Operator string `json:"operator"` // URL of DOORWARD_OPERATOR_LISTEN
	KeyFile  string `json:"keyFile"`  // an entry of DOORWARD_OPERATOR_KEYS with the role lookup
	CAFile   string `json:"caFile"`   // certificate authorities (PEM) for the certificate of Operator; "": those of the system

	keyName, keySecret string
	roots              *x509.CertPool
}

// roles are those of DOORWARD_OPERATOR_KEYS.
var roles = []string{"admin", "read", "lookup"}

// ReadConfig reads the file of the cells, with the files that it names. Relative names are below its folder.
func ReadConfig(path string) (Config, error) {
	var c Config
	file, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer func() { _ = file.Close() }()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	names := map[string]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		if names[cell.Name] {
			return c, fmt.Errorf("%s: two cells have the name %q", path, cell.Name)
		}
		names[cell.Name] = true
		if err := cell.read(filepath.Dir(path)); err != nil {
			return c, fmt.Errorf("%s: the cell %q: %w", path, cell.Name, err)
		}
	}
	if !names[c.Default] {
		return c, fmt.Errorf("%s: default is %q, which is the name of no cell", path, c.Default)
	}
	return c, nil
}

// read checks a cell and reads its files.
func (c *CellConfig) read(folder string) error {
	if c.Name == "" || strings.ContainsFunc(c.Name+c.Address, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("name and address are visible characters of ASCII, because headers have them")
	}
	if c.Address == "" {
		return errors.New("address is missing")
	}
	operator, err := url.Parse(c.Operator)
	if err != nil || operator.Host == "" || operator.Scheme != "https" && operator.Scheme != "http" {
		return errors.New("operator is the URL of its DOORWARD_OPERATOR_LISTEN, such as https://cell-a.internal:9443")
	}
	c.Operator = strings.TrimSuffix(strings.TrimSuffix(c.Operator, "/"), "/operator/v1")
	if err := c.readKey(below(folder, c.KeyFile)); err != nil || c.CAFile == "" {
		return err
	}
	pem, err := os.ReadFile(below(folder, c.CAFile))
	if err != nil {
		return err
	}
	c.roots = x509.NewCertPool()
	if !c.roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("caFile: %s has no certificate in PEM", c.CAFile)
	}
	return nil
}

// readKey reads name:role:secret, or name:secret.
func (c *CellConfig) readKey(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("keyFile: %w", err)
	}
	name, secret, _ := strings.Cut(strings.TrimSpace(string(content)), ":")
	if role, rest, found := strings.Cut(secret, ":"); found && slices.Contains(roles, role) {
		secret = rest
	}
	if name == "" || secret == "" || strings.ContainsAny(secret, " \n") {
		return fmt.Errorf("keyFile: %s has no single name:role:secret, as in DOORWARD_OPERATOR_KEYS of the cell", path)
	}
	c.keyName, c.keySecret = name, secret
	return nil
}

// below returns a path that, unless it is absolute, is below a folder.
func below(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
