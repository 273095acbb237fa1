package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

const (
	// Dir is the chart, and Values the sets of values that it is tried with, seen
	// from this folder.
	Dir    = "../../deploy/helm/doorward"
	Values = "testdata/*.yaml"
	// Release is the name under which it is rendered.
	Release = "doorward"
)

// Object is a rendered object.
type Object interface{ meta.Object }

// Render renders the chart with a file of values. Each object is decoded into the
// type of its kind, in which every field must exist.
func Render(file string) ([]Object, error) {
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return nil, err
	}
	return render(values)
}

func render(values chartutil.Values) (objects []Object, err error) {
	loaded, err := loader.Load(Dir)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: Release, Namespace: "identity", IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		found, err := decode(files[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func decode(file string) (objects []Object, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(file)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		var kind meta.TypeMeta
		if err := strict.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		if kind.Kind == "" { // a comment
			continue
		}
		object := newObject(kind)
		if object == nil {
			return nil, fmt.Errorf("no type is known for %s %s", kind.APIVersion, kind.Kind)
		}
		if err := strict.UnmarshalStrict(document, object); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		objects = append(objects, object)
	}
}

func newObject(kind meta.TypeMeta) Object {
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 Deployment":
		return new(apps.Deployment)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return new(autoscaling.HorizontalPodAutoscaler)
	case "batch/v1 Job":
		return new(batch.Job)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return new(monitoring.PrometheusRule)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return new(monitoring.ServiceMonitor)
	case "networking.k8s.io/v1 NetworkPolicy":
		return new(networking.NetworkPolicy)
	case "policy/v1 PodDisruptionBudget":
		return new(policy.PodDisruptionBudget)
	case "v1 Pod":
		return new(core.Pod)
	case "v1 Service":
		return new(core.Service)
	case "v1 ServiceAccount":
		return new(core.ServiceAccount)
	}
	return nil
}
