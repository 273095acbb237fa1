// Chart renders deploy/helm/doorward without a cluster: its tests check the objects,
// and the command prints what of them a plain process needs, which deploy/e2e
// starts the product from. It is a module of its own outside the workspace, so that
// nothing else compiles Helm.
//
//	go run . values.yaml
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
)

// plain is what the command prints.
type plain struct {
	Processes []process
	Services  []service
}

// process is the container of a Deployment or a Job.
type process struct {
	Name     string // of the component
	Program  string // last element of the image's name
	Args     []string
	Env      []core.EnvVar
	Files    []file
	Replicas int32 // of a Deployment; 0 of a Job
	Ready    string
}

// file is a key of a Secret and where it is mounted.
type file struct{ Path, Secret, Key string }

// service is a name under which a component is called.
type service struct {
	Address   string // host:port
	Component string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart values.yaml")
		os.Exit(2)
	}
	objects, err := Render(os.Args[1])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(reduce(objects))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func reduce(objects []Object) (found plain) {
	least := map[string]int32{}
	for _, object := range objects {
		if scaler, ok := object.(*autoscaling.HorizontalPodAutoscaler); ok {
			least[scaler.Spec.ScaleTargetRef.Name] = *scaler.Spec.MinReplicas
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *apps.Deployment:
			replicas := least[o.Name]
			if o.Spec.Replicas != nil {
				replicas = *o.Spec.Replicas
			}
			found.Processes = append(found.Processes, newProcess(o.Spec.Template, replicas))
		case *batch.Job:
			found.Processes = append(found.Processes, newProcess(o.Spec.Template, 0))
		case *core.Service:
			for _, port := range o.Spec.Ports {
				if port.TargetPort.String() == "http" {
					address := fmt.Sprintf("%s:%d", o.Name, port.Port)
					found.Services = append(found.Services, service{address, o.Spec.Selector[component]})
				}
			}
		}
	}
	return found
}

const component = "app.kubernetes.io/component"

func newProcess(pod core.PodTemplateSpec, replicas int32) process {
	container := pod.Spec.Containers[0]
	image := path.Base(container.Image)
	image = image[:strings.IndexAny(image, "@:")]
	p := process{Name: pod.Labels[component], Program: image, Args: container.Args, Env: container.Env, Replicas: replicas}
	if container.ReadinessProbe != nil {
		p.Ready = container.ReadinessProbe.HTTPGet.Path
	}
	mounts := map[string]string{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.Name] = mount.MountPath
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				p.Files = append(p.Files, file{path.Join(mounts[volume.Name], item.Path), source.Secret.Name, item.Key})
			}
		}
	}
	return p
}
