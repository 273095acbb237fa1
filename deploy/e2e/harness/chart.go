package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/deployment"
)

// chart is the processes and Services that the Helm chart renders, as .ci/chart prints them.
type chart struct {
	Processes []chartProcess
	Services  []struct{ Address, Component string }

	balancers []*balancer       // one for each Service
	addresses *strings.Replacer // of names of Services by addresses of their balancers
}

// chartProcess is the container of a Deployment or a Job.
type chartProcess struct {
	Name, Program string
	Args          []string
	Env           []struct{ Name, Value string }
	Files         []struct{ Path, Secret, Key string }
	Replicas      int
	Ready         string
}

// startChart renders the chart for the servers of the plan, opens an address for
// each of its Services but the gateway's, and runs its Job of migrations, then the doctor.
func (d *Distributed) startChart(ctx context.Context, p *plan) error {
	values, err := d.chartValues(ctx, p)
	if err != nil {
		return err
	}
	if d.chart, err = render(ctx, d.config.path("values.json"), values); err != nil {
		return err
	}
	var addresses []string
	for _, service := range d.chart.Services {
		if service.Component == "gateway" {
			continue
		}
		balancer, err := startBalancer("127.0.0.1:0", p.peers[service.Component])
		if err != nil {
			return err
		}
		d.chart.balancers = append(d.chart.balancers, balancer)
		addresses = append(addresses, "//"+service.Address, "//"+balancer.listener.Addr().String())
	}
	d.chart.addresses = strings.NewReplacer(addresses...)
	for _, name := range []string{"migrate", "toolbox"} {
		job, err := d.chart.process(name)
		if err != nil {
			return err
		}
		env, err := d.chartEnvironment(p, job)
		if err != nil {
			return err
		}
		command := exec.CommandContext(ctx, filepath.Join(d.config.Bin, job.Program), job.Args...)
		command.Env = environment(env...)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run the chart's Job %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// chartValues are the values of the chart as an operator sets them, and for each process the
// variables that only tests need.
func (d *Distributed) chartValues(ctx context.Context, p *plan) (map[string]any, error) {
	processes := map[string]any{}
	for _, name := range append([]string{"gateway"}, deployment.Services...) {
		known, err := knownSettings(ctx, filepath.Join(d.config.Bin, name), d.testSettings(p))
		if err != nil {
			return nil, err
		}
		env := map[string]string{}
		for _, setting := range known {
			variable, value, _ := strings.Cut(setting, "=")
			env[variable] = value
		}
		processes[name] = map[string]any{"env": env}
	}
	type object = map[string]any
	return object{
		"baseUrl":  p.Key.BaseURL,
		"database": object{"services": object{"directory": object{"name": "database-directory", "key": "url"}}},
		"kafka":    object{"brokers": strings.Split(p.kafka, ","), "tls": false},
		"mail":     object{"from": "no-reply@example.test", "fromName": "Doorward"},
		"bootstrap": object{
			"keyId":      object{"name": "first-tenant", "key": "id"},
			"keySecret":  object{"name": "first-tenant", "key": "secret"},
			"ownerEmail": "owner@example.test",
		},
		"drainSeconds": 1,
		"toolbox":      object{"args": []string{"doctor"}},
		"processes":    processes,
	}, nil
}

// secrets are the values of the cluster's Secrets, by name and key.
func (p *plan) secrets() (map[string]string, error) {
	secrets := map[string]string{
		"doorward/internal-secret": p.Internal,
		"doorward/master-key":      p.Master,
		"doorward/database-url":    p.database,
		"doorward/redis-url":       p.redis,
		"doorward/smtp-url":        "smtp://" + p.smtp,
		"database-directory/url":   p.database,
		"first-tenant/id":          p.Key.ID,
		"first-tenant/secret":      p.Key.Secret,
	}
	for key, path := range map[string]string{"tls.crt": p.cert, "tls.key": p.key} {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a certificate: %w", err)
		}
		secrets["doorward-tls/"+key] = string(content)
	}
	return secrets, nil
}

// render runs Helm's engine (.ci/chart), which is a module outside the workspace.
func render(ctx context.Context, file string, values any) (*chart, error) {
	if err := e2e.WriteJSON(file, values); err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	helm := exec.CommandContext(ctx, "go", "run", ".", file)
	helm.Dir, helm.Env = filepath.Join(root, ".ci/chart"), append(os.Environ(), "GOWORK=off")
	var messages strings.Builder
	helm.Stderr = &messages
	out, err := helm.Output()
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w\n%s", err, &messages)
	}
	rendered := &chart{}
	if err := json.Unmarshal(out, rendered); err != nil {
		return nil, fmt.Errorf("read the rendered chart: %w", err)
	}
	return rendered, nil
}

func (c *chart) process(name string) (*chartProcess, error) {
	i := slices.IndexFunc(c.Processes, func(p chartProcess) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the chart renders no %s", name)
	}
	return &c.Processes[i], nil
}

// chartEnvironment is the environment of a container on this machine: names of
// Services become addresses, and mounted Secrets become files in the folder of the
// deployment. Everything else stays as the chart renders it.
func (d *Distributed) chartEnvironment(p *plan, process *chartProcess) ([]string, error) {
	secrets, err := p.secrets()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, file := range process.Files {
		content, exists := secrets[file.Secret+"/"+file.Key]
		if !exists {
			return nil, fmt.Errorf("%s mounts the key %s of Secret %s, which is not defined", process.Name, file.Key, file.Secret)
		}
		path := d.config.path("secrets", process.Name, filepath.Base(file.Path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			return nil, fmt.Errorf("write a secret: %w", err)
		}
		files[file.Path] = path
	}
	var env []string
	for _, variable := range process.Env {
		value := d.chart.addresses.Replace(variable.Value)
		if path, mounted := files[variable.Value]; mounted {
			value = path
		}
		env = append(env, variable.Name+"="+value)
	}
	return env, nil
}
