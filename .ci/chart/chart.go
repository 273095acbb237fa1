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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
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

func render(values chartutil.Values) ([]Object, error) {
	files, err := renderFiles(Release, values, noCluster{})
	if err != nil {
		return nil, err
	}
	return decodeAll(files)
}

// renderFiles renders the chart as a release of a name, in a cluster in which templates look objects up.
func renderFiles(release string, values chartutil.Values, cluster engine.ClientProvider) (map[string]string, error) {
	loaded, err := loader.Load(Dir)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: "identity", IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.RenderWithClientProvider(loaded, all, cluster)
}

// noCluster is what templates find without a cluster, as with helm template.
type noCluster struct{}

// GetClientFor returns a client that finds nothing.
func (noCluster) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return fake.NewSimpleDynamicClient(runtime.NewScheme()).Resource(schema.GroupVersionResource{}), true, nil
}

func decodeAll(files map[string]string) (objects []Object, err error) {
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
	case "cert-manager.io/v1 Certificate":
		return new(Certificate)
	case "gateway.networking.k8s.io/v1 HTTPRoute":
		return new(HTTPRoute)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return new(monitoring.PrometheusRule)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return new(monitoring.ServiceMonitor)
	case "networking.k8s.io/v1 Ingress":
		return new(networking.Ingress)
	case "networking.k8s.io/v1 NetworkPolicy":
		return new(networking.NetworkPolicy)
	case "policy/v1 PodDisruptionBudget":
		return new(policy.PodDisruptionBudget)
	case "v1 ConfigMap":
		return new(core.ConfigMap)
	case "v1 Pod":
		return new(core.Pod)
	case "v1 Service":
		return new(core.Service)
	case "v1 ServiceAccount":
		return new(core.ServiceAccount)
	}
	return nil
}

// Certificate is the object of cert-manager that makes it write a Secret, as far as the chart uses it.
type Certificate struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		SecretName string                                     `json:"secretName"`
		DNSNames   []string                                   `json:"dnsNames"`
		PrivateKey struct{ Algorithm, RotationPolicy string } `json:"privateKey"`
		IssuerRef  struct{ Group, Kind, Name string }         `json:"issuerRef"`
	} `json:"spec"`
}

// HTTPRoute is the route of the Gateway API, as far as the chart uses it.
type HTTPRoute struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ParentRefs []struct{ Name, Namespace, SectionName string } `json:"parentRefs"`
		Hostnames  []string                                        `json:"hostnames"`
		Rules      []struct {
			BackendRefs []struct {
				Name string
				Port int
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}
