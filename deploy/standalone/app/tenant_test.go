package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/standalone/tenantmove"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
)

// interrupted cancels a context after some lines of progress.
type interrupted struct {
	bytes.Buffer
	lines  int
	cancel context.CancelFunc
}

func (w *interrupted) Write(p []byte) (int, error) {
	if w.lines--; w.lines == 0 {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

// inPieces calls a function until it succeeds, and interrupts each call after some
// lines of progress.
func inPieces(t *testing.T, do func(ctx context.Context, out *interrupted) error) {
	t.Helper()
	for calls := 1; ; calls++ {
		ctx, cancel := context.WithCancel(t.Context())
		out := &interrupted{lines: 12, cancel: cancel}
		err := do(ctx, out)
		stopped := ctx.Err() != nil
		cancel()
		if err == nil {
			if calls < 3 {
				t.Errorf("the command was never interrupted: %d calls", calls)
			}
			return
		}
		if !stopped || calls == 100 {
			t.Fatalf("call %d: %v\n%s", calls, err, out.String())
		}
	}
}

func TestATenantMovesToAnotherDeployment(t *testing.T) {
	t.Parallel()
	from := start(t, newFolder(t), "DOORWARD_SIGN_UP=true")
	to := start(t, newFolder(t))
	application := from.fillTenant()
	before := from.crawl()
	if len(before) < 60 {
		t.Errorf("only %d resources to compare", len(before))
	}

	var pair bytes.Buffer
	if err := NewExportKeyPair(env.New(nil), "", &pair); err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(pair.String(), "\n")
	recipient := strings.TrimPrefix(comment, "# public key: ")
	folder := filepath.Join(t.TempDir(), "export")
	key := before[from.tenantPath()]["key"].(string)
	source := func(p *product) *env.Source {
		return env.New([]string{"DOORWARD_DATA_DIR=" + p.dir, "PATH=" + os.Getenv("PATH")})
	}
	var signer string
	inPieces(t, func(ctx context.Context, out *interrupted) error {
		err := ExportTenant(ctx, source(from), key, recipient, folder, new(operatorlog.Event), out)
		_, signer, _ = strings.Cut(strings.TrimSpace(out.String()), "signed with the key ")
		return err
	})
	for _, secret := range []string{"pw-of-smtp-server", "secret-of-client", "jo@example.test"} {
		if found := containing(t, folder, secret); len(found) > 0 {
			t.Errorf("%q is readable in %v", secret, found)
		}
	}
	if err := ExportTenant(t.Context(), source(from), key, recipient, folder, new(operatorlog.Event), new(bytes.Buffer)); err == nil {
		t.Error("a complete export is written over")
	}
	var other bytes.Buffer
	if err := errors.Join(NewExportKeyPair(env.New(nil), "", &other), os.Mkdir(filepath.Join(t.TempDir(), "none"), 0o700)); err != nil {
		t.Fatal(err)
	}
	into := func(identity, signer string) error {
		return ImportTenant(t.Context(), source(to), folder, identity, signer, "", new(operatorlog.Event), new(bytes.Buffer))
	}
	if err := into(other.String(), signer); err == nil {
		t.Error("another private key opens the export")
	}
	for _, otherSigner := range []string{"", signer + "A", recipient} {
		err := into(pair.String(), otherSigner)
		if err == nil || !strings.Contains(err.Error(), "signed with the key "+signer) {
			t.Errorf("an export signed with %q where %q is expected: %v", signer, otherSigner, err)
		}
	}
	refusesChangedFiles(t, folder, func() error { return into(pair.String(), signer) })
	otherKey := dataFolder(to.dir, "DOORWARD_MASTER_KEY="+secure.NewMasterKey("k1").Reveal())
	err := ImportTenant(t.Context(), otherKey, folder, pair.String(), signer, "", new(operatorlog.Event), new(bytes.Buffer))
	if !errors.Is(err, reseal.ErrMasterKey) {
		t.Errorf("an import under another master key: %v", err)
	}
	if hasTenant(t, source(to), key) {
		t.Error("an import that was refused has made the tenant")
	}
	inPieces(t, func(ctx context.Context, out *interrupted) error {
		return ImportTenant(ctx, source(to), folder, pair.String(), signer, "", new(operatorlog.Event), out)
	})
	if err := into(pair.String(), signer); err == nil || !strings.Contains(err.Error(), "in this deployment") {
		t.Errorf("a second import: %v", err)
	}
	// The deployment that has signed the export needs no public key, and holds the tenant.
	err = ImportTenant(t.Context(), source(from), folder, pair.String(), "", "", new(operatorlog.Event), new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "in this deployment") {
		t.Errorf("an import by the deployment that has signed the export: %v", err)
	}

	// The API key of the tenant works at the other deployment, and reads the same.
	moved := *to
	moved.key.ID, moved.key.Secret = from.key.ID, from.key.Secret
	sameResources(t, before, moved.crawl())
	login := func(p *product, password string, status int) {
		path := strings.TrimPrefix(application, from.key.BaseURL) + "/loginAttempts"
		p.send("POST", path, `{"type":"basic","value":"`+basic("jo@example.test", password)+`"}`, status)
	}
	login(&moved, "Changeme1!", 200)
	login(&moved, "Changeme2!", 400)
	sameRows(t, source(from), source(to), key)

	// Once it has been restarted, the other deployment takes the addresses that the tenant had.
	mapped, _ := moved.send("GET", strings.TrimPrefix(application, from.key.BaseURL)+"/accountStoreMappings", "", 200)
	there := mapped["items"].([]any)[0].(map[string]any)["accountStore"].(map[string]any)["href"].(string)
	at := func(p *product, base string, status int) {
		p.Helper()
		store := base + strings.TrimPrefix(there, to.key.BaseURL)
		p.send("POST", strings.TrimPrefix(application, from.key.BaseURL)+"/loginAttempts",
			`{"type":"basic","value":"`+basic("jo@example.test", "Changeme1!")+`","accountStore":{"href":"`+store+`"}}`, status)
	}
	to.stop()
	again := start(t, to.dir)
	again.key.ID, again.key.Secret = from.key.ID, from.key.Secret
	at(again, again.key.BaseURL, 200)
	at(again, from.key.BaseURL, 200)
	at(again, "https://elsewhere.example.test/v1", 400)
}

// refusesChangedFiles tries the import of an export of which one byte of a file was changed, for
// each file, of which one was removed, for each, and to which one was added.
func refusesChangedFiles(t *testing.T, folder string, importIt func() error) {
	t.Helper()
	refuses := func(file, what string) {
		t.Helper()
		if err := importIt(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("import of an export whose file %s was %s: %v", file, what, err)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) < 10 {
		t.Fatalf("the export has %d files, %v", len(entries), err)
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write := func(content []byte) {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		changed := bytes.Clone(content)
		changed[len(changed)/2] ^= 1
		write(changed)
		refuses(entry.Name(), "changed")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		refuses(entry.Name(), "removed")
		write(content)
	}
	added := filepath.Join(folder, "directory.accounts.9999.age")
	if err := os.WriteFile(added, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(filepath.Base(added), "added")
	if err := os.Remove(added); err != nil {
		t.Fatal(err)
	}
}

// hasTenant reports whether a deployment has a tenant.
func hasTenant(t *testing.T, source *env.Source, key string) bool {
	t.Helper()
	d, err := OpenDeployment(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.findTenant(t.Context(), key)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return err == nil
}

func sameResources(t *testing.T, before, after map[string]map[string]any) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(before)) {
		want, got := fmt.Sprint(before[path]), fmt.Sprint(after[path])
		if want != got {
			t.Errorf("%s\nwas %s\nand is %s", path, want, got)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d resources became %d", len(before), len(after))
	}
}

// sameRows compares all rows of a tenant in two deployments, with the values of
// sealed columns opened.
func sameRows(t *testing.T, from, to *env.Source, key string) {
	t.Helper()
	read := func(source *env.Source) map[string][]string {
		d, err := OpenDeployment(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}()
		tenant, err := d.findTenant(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string][]string{}
		for _, schema := range d.Schemas {
			db := d.DBs[schema.Config.Schema]
			tables, err := db.TenantTables(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range tables {
				name := schema.Config.Schema + "." + table.Name
				if tenantmove.Excluded[table.Name] != "" || tenantmove.Excluded[name] != "" {
					continue
				}
				if table.Name == "usage_counts" {
					continue // each deployment goes on counting what this test does there
				}
				lines, err := pg.Values[string](t.Context(), db, `SELECT row_to_json(t)::text FROM "`+table.Name+`" t WHERE tenant_id = $1`, tenant.ID)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range lines {
					row := map[string]json.RawMessage{}
					if err := json.Unmarshal([]byte(line), &row); err != nil {
						t.Fatal(err)
					}
					if _, err := schema.Convert(table.Name, row, func(value, purpose string) (string, error) {
						var sealed []byte
						if _, err := fmt.Sscanf(value, `\x%x`, &sealed); err != nil {
							return "", err
						}
						plain, err := d.Ring.Open(sealed, purpose)
						return plain.Reveal(), err
					}); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					rows[name] = append(rows[name], fmt.Sprintf("%s", row))
				}
				slices.Sort(rows[name])
			}
		}
		return rows
	}
	before, after := read(from), read(to)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !slices.Equal(before[name], after[name]) {
			t.Errorf("%s was\n%s\nand is\n%s", name, strings.Join(before[name], "\n"), strings.Join(after[name], "\n"))
		}
	}
	t.Logf("%d tables with rows", len(before))
}

// Each column of sealed bytes is opened for an export, and each table is exported
// or left out for a reason.
func TestAnExportKnowsEverySealedColumn(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, migrated)
	for _, schema := range allInOneDatabase(url).sealedSchemas() {
		db, err := pg.Open(t.Context(), schema.Config)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := db.TenantTables(t.Context())
		if err != nil || len(tables) < 4 {
			t.Fatalf("%s has %d tables, %v", schema.Config.Schema, len(tables), err)
		}
		for _, table := range tables {
			name := schema.Config.Schema + "." + table.Name
			for _, column := range table.Columns {
				known := schema.IsSealed(table.Name, column)
				if strings.HasSuffix(column, "_sealed") && !known && tenantmove.Excluded[name] == "" {
					t.Errorf("%s.%s would be exported under the master key", name, column)
				}
			}
		}
		db.Close()
	}
}

func basic(name, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
}

// containing lists the files of a folder that contain a text.
func containing(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("the folder has %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(text)) {
			found = append(found, file)
		}
	}
	return found
}

// fillTenant makes resources of each kind, with secrets of each service, and returns
// the address of an application.
func (p *product) fillTenant() (application string) {
	p.Helper()
	made, _ := p.send("POST", "/applications?createDirectory=true", `{"name":"Shop","customData":{"a":[1,2.50,"x"]}}`, 201)
	application = href(made)
	account, _ := p.send("POST", application+"/accounts",
		`{"email":"jo@example.test","username":"jo","givenName":"Jo","password":"Changeme1!","customData":{"colour":"green","n":12345678901234567890}}`, 201)
	group, _ := p.send("POST", application+"/groups", `{"name":"Admins","customData":{"level":3}}`, 201)
	p.send("POST", "/groupMemberships", `{"account":{"href":"`+href(account)+`"},"group":{"href":"`+href(group)+`"}}`, 201)
	p.send("POST", href(account, "apiKeys"), `{"name":"mine"}`, 201)
	p.send("POST", href(account, "factors"), `{"type":"google-authenticator","issuer":"Shop"}`, 201)
	p.send("POST", href(account, "phones"), `{"number":"+15005550006"}`, 201)
	organization, _ := p.send("POST", "/organizations?createDirectory=true", `{"name":"Acme","nameKey":"acme"}`, 201)
	second, _ := p.send("POST", href(organization, "accounts"), `{"email":"al@example.test","password":"Changeme1!"}`, 201)
	p.send("POST", "/accountLinks", `{"leftAccount":{"href":"`+href(account)+`"},"rightAccount":{"href":"`+href(second)+`"}}`, 201)
	p.send("POST", "/accountStoreMappings", `{"application":{"href":"`+application+`"},"accountStore":{"href":"`+href(organization)+`"}}`, 201)
	p.send("POST", href(made, "oAuthPolicy"), `{"accessTokenTtl":"PT30M"}`, 200)
	p.send("POST", href(made, "webConfig"), `{"login":{"enabled":false}}`, 200)
	p.send("POST", href(made, "openIdClients"), `{"name":"Browser","redirectUris":["https://shop.test/cb"],"customData":{"team":"web"}}`, 201)
	policy, _ := p.send("GET", href(made, "samlPolicy"), "", 200)
	p.send("GET", href(policy, "identityProvider"), "", 200)
	p.send("POST", "/registeredSamlServiceProviders", `{"assertionConsumerServiceUrl":"https://sp.example.test","entityId":"sp"}`, 201)
	p.send("POST", "/directories", `{"name":"Social","provider":{"providerId":"google","clientId":"me","clientSecret":"secret-of-client",
		"redirectUri":"https://app.localhost/cb"}}`, 201)
	p.send("POST", "/applications/"+filepath.Base(application)+"/passwordResetTokens", `{"email":"jo@example.test"}`, 200)
	site, _ := p.send("GET", p.tenantPath()+"/idSites", "", 200)
	first := site["items"].([]any)[0].(map[string]any)
	p.send("POST", href(first), `{"tlsPrivateKey":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}`, 200)
	return application
}

// tenantPath returns the path of the tenant of the API key.
func (p *product) tenantPath() string {
	p.Helper()
	_, header := p.send("GET", "/tenants/current", "", 302)
	return strings.TrimPrefix(header.Get("Location"), p.key.BaseURL)
}

// crawl reads the tenant and all that it leads to, by path. The address of the
// deployment is left out.
func (p *product) crawl() map[string]map[string]any {
	p.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(p.key.BaseURL, "https://"), "/v1")
	found := map[string]map[string]any{}
	for queue := []string{p.tenantPath()}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if _, seen := found[path]; seen {
			continue
		}
		request, err := http.NewRequestWithContext(p.Context(), "GET", p.key.BaseURL+path, nil)
		if err != nil {
			p.Fatal(err)
		}
		request.SetBasicAuth(p.key.ID, p.key.Secret)
		response, err := p.client.Do(request)
		if err != nil {
			p.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			p.Fatal(err)
		}
		object := map[string]any{}
		if response.StatusCode != http.StatusOK {
			object["status of the answer"] = response.StatusCode
		} else if json.Unmarshal(bytes.ReplaceAll(body, []byte(address), []byte("ADDRESS")), &object) != nil {
			object["text"] = string(bytes.ReplaceAll(body, []byte(address), []byte("ADDRESS")))
		}
		found[path] = object
		var links func(value any)
		links = func(value any) {
			switch value := value.(type) {
			case map[string]any:
				if link, ok := value["href"].(string); ok && strings.HasPrefix(link, "https://ADDRESS/v1/") {
					queue = append(queue, strings.TrimPrefix(link, "https://ADDRESS/v1"))
				}
				for _, member := range value {
					links(member)
				}
			case []any:
				for _, item := range value {
					links(item)
				}
			}
		}
		links(object)
	}
	return found
}
