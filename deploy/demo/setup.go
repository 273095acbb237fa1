package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/client"
)

// The user of the demo.
const (
	email    = "jo@example.test"
	password = "Changeme1!"
)

// deployment is the running Doorward.
type deployment struct {
	host   string // address without the version
	key    client.Credentials
	tenant *client.Tenant
	api    *client.Client
	http   *http.Client // trusts the certificate authority of standalone
}

// connect reads the API key that standalone has written (apikey.json), and sends a request with it.
func connect(ctx context.Context, folder string) (*deployment, error) {
	content, err := os.ReadFile(filepath.Join(folder, "apikey.json"))
	if err != nil {
		return nil, err
	}
	var file struct{ ID, Secret, BaseURL, CAFile string }
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(file.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	d := &deployment{
		host: strings.TrimSuffix(file.BaseURL, "/v1"), key: client.Credentials{ID: file.ID, Secret: file.Secret},
		http: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
	}
	if d.api, err = client.New(file.BaseURL, d.key, client.HTTPClient(d.http)); err != nil {
		return nil, err
	}
	d.tenant, err = client.Get[client.Tenant](ctx, d.api, "/tenants/current")
	return d, err
}

// findOrMakeApplication returns the application with a name, with the callback among its authorized
// ones, and makes it where there is none. The first application gets a directory with one user in one group; the second has
// the same directory as its account store.
func (d *deployment) findOrMakeApplication(ctx context.Context, name, callback string) (*client.Application, error) {
	for found, err := range client.All[client.Application](ctx, d.api, d.tenant.Applications.Href, url.Values{"name": {name}}) {
		if err != nil || slices.Contains(found.AuthorizedCallbackUris, callback) {
			return found, err
		}
		change := map[string]any{"authorizedCallbackUris": []string{callback}}
		return client.Update[client.Application](ctx, d.api, found.Href, change)
	}
	body := client.NewApplication{Name: name, AuthorizedCallbackUris: &[]string{callback}}
	directory, err := d.sharedDirectory(ctx)
	if client.Is(err, http.StatusNotFound) {
		return d.makeFirstApplication(ctx, body)
	}
	if err != nil {
		return nil, err
	}
	made, err := client.Create[client.Application](ctx, d.api, "/applications", body)
	if err != nil {
		return nil, err
	}
	_, err = client.Create[client.AccountStoreMapping](ctx, d.api, "/accountStoreMappings", map[string]any{
		"application": client.Link{Href: made.Href}, "accountStore": client.Link{Href: directory.Href}, "isDefaultAccountStore": true,
	})
	return made, err
}

// sharedDirectory returns the directory of the first application.
func (d *deployment) sharedDirectory(ctx context.Context) (*client.Directory, error) {
	query := url.Values{"name": {"Demo shop Directory"}}
	for found, err := range client.All[client.Directory](ctx, d.api, d.tenant.Directories.Href, query) {
		return found, err
	}
	return nil, &client.Error{Status: http.StatusNotFound, Code: http.StatusNotFound}
}

// makeFirstApplication makes the first application with its directory, user and group.
func (d *deployment) makeFirstApplication(ctx context.Context, body client.NewApplication) (*client.Application, error) {
	made, err := client.Create[client.Application](ctx, d.api, "/applications?createDirectory=true", body)
	if err != nil {
		return nil, err
	}
	given, surname := "Jo", "Doe"
	account, err := client.Create[client.Account](ctx, d.api, made.Accounts.Href,
		client.NewAccount{Email: email, Password: password, GivenName: &given, Surname: &surname})
	if err != nil {
		return nil, err
	}
	group, err := client.Create[client.Group](ctx, d.api, made.Groups.Href, client.NewGroup{Name: "Gold customers"})
	if err != nil {
		return nil, err
	}
	_, err = client.Create[client.GroupMembership](ctx, d.api, "/groupMemberships", map[string]any{
		"account": client.Link{Href: account.Href}, "group": client.Link{Href: group.Href},
	})
	return made, err
}
