// Command grafana writes Grafana's dashboards beside it, from dashboards.go:
//
//	go generate ./deploy/grafana
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:generate go run .

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for name, content := range files() {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files returns the JSON of the dashboards by the names of their files.
func files() map[string][]byte {
	made := map[string][]byte{}
	for _, d := range dashboards {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(d.model()); err != nil {
			panic(err) // the model is made of maps and strings
		}
		made[d.name+".json"] = out.Bytes()
	}
	return made
}

// dashboard is one of Grafana's, with rows of panels.
type dashboard struct {
	name, title string
	variables   []variable
	rows        []row
}

type row struct {
	title  string
	panels []panel
}

// variable is a template variable, whose value the viewer types in.
type variable struct{ name, label string }

// panel shows queries over time.
type panel struct {
	title       string
	unit        string  // of Grafana: s, bytes, percentunit, reqps, short
	kind        string  // timeseries if empty; stat, logs
	description string  // what a reader can tell from it
	runbook     string  // page of docs/runbooks of its alert; empty: it has none
	threshold   float64 // of a panel with a runbook: the value from which its alert fires
	fallsBelow  bool    // the alert fires below the threshold
	queries     []query
}

// runbooks is where the pages of docs/runbooks are read, as alerts.yml names them.
const runbooks = "https://github.com/doorward/doorward/blob/main/docs/runbooks/"

// query is in PromQL, or in LogQL where the panel shows logs.
type query struct{ expression, legend string }

// The sizes of a panel in units of Grafana's grid, which is 24 wide.
const columns, width, height = 24, 8, 8

type object map[string]any

var (
	metrics = object{"type": "prometheus", "uid": "${metrics}"}
	logs    = object{"type": "loki", "uid": "${logs}"}
)

// model is the dashboard in Grafana's JSON model.
func (d dashboard) model() object {
	var panels []object
	id, y := 0, 0
	for _, row := range d.rows {
		id++
		panels = append(panels, object{
			"id": id, "type": "row", "title": row.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1},
		})
		y++
		for i, p := range row.panels {
			id++
			position := object{"x": i * width % columns, "y": y + i*width/columns*height, "w": width, "h": height}
			panels = append(panels, p.model(id, position))
		}
		y += (len(row.panels)*width + columns - 1) / columns * height
	}
	variables := []object{
		{"name": "metrics", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
		{"name": "logs", "label": "Loki", "type": "datasource", "query": "loki"},
		valuesOf("namespace", "Namespace", `label_values(doorward_build_info, namespace)`),
		valuesOf("release", "Release", `label_values(doorward_build_info{namespace=~"$namespace"}, release)`),
	}
	for _, v := range d.variables {
		variables = append(variables, object{"name": v.name, "label": v.label, "type": "textbox"})
	}
	return object{
		"uid": "doorward-" + d.name, "title": d.title, "tags": []string{"doorward"}, "schemaVersion": 39, "editable": false,
		"refresh": "30s", "time": object{"from": "now-3h", "to": "now"}, "templating": object{"list": variables}, "panels": panels,
		"annotations": object{"list": []object{}},
	}
}

// valuesOf is a template variable whose values are those of a label. All of them are chosen at first, also of series
// that lack the label, as without Kubernetes.
func valuesOf(name, label, query string) object {
	return object{
		"name": name, "label": label, "type": "query", "datasource": metrics, "query": query, "refresh": 2, "sort": 1,
		"multi": true, "includeAll": true, "allValue": ".*",
		"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
	}
}

// ofRelease are the labels of series of the chosen releases: namespace is a label of the Prometheus Operator, release of
// the chart's ServiceMonitor.
const ofRelease = `namespace=~"$namespace",release=~"$release"`

// series matches the name of the series of a process or of a recording rule, with the beginning of its labels.
var series = regexp.MustCompile(`\b(?:doorward:\w+:\w+|(?:doorward|process|go)_\w+|up\b)\{?`)

// scoped limits the series of an expression in PromQL to the chosen releases.
func scoped(expression string) string {
	return series.ReplaceAllStringFunc(expression, func(found string) string {
		if name, labels := strings.CutSuffix(found, "{"); labels {
			return name + "{" + ofRelease + ","
		}
		return found + "{" + ofRelease + "}"
	})
}

// model is the panel in Grafana's JSON model.
func (p panel) model(id int, position object) object {
	kind, source := p.kind, metrics
	if kind == "" {
		kind = "timeseries"
	}
	if kind == "logs" {
		source = logs
	}
	var targets []object
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expression}
		if kind != "logs" {
			target["expr"], target["legendFormat"], target["exemplar"] = scoped(q.expression), q.legend, true
		}
		targets = append(targets, target)
	}
	made := object{
		"id": id, "type": kind, "title": p.title, "description": p.description, "gridPos": position, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []any{}},
	}
	if p.runbook != "" {
		made["links"] = []object{{
			"title": "Runbook", "type": "link", "url": runbooks + p.runbook, "targetBlank": true, "icon": "", "tooltip": "", "tags": []string{},
			"asDropdown": false, "includeVars": false, "keepTime": false,
		}}
		made["fieldConfig"] = object{"defaults": p.withThreshold(kind), "overrides": []any{}}
	}
	return made
}

// withThreshold is how a panel shows where its alert fires: a line, or the colour of a number.
func (p panel) withThreshold(kind string) object {
	below, above := "green", "red"
	if p.fallsBelow {
		below, above = above, below
	}
	defaults := object{"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": []object{
		{"color": below, "value": nil}, {"color": above, "value": p.threshold},
	}}}
	if kind == "timeseries" {
		defaults["custom"] = object{"thresholdsStyle": object{"mode": "line"}}
	}
	return defaults
}
