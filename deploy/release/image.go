package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the user of the images, as in deploy/docker/Dockerfile.
const nonroot = 65532

// images makes the image of each process for the platforms of Linux, as an archive of an OCI image layout. It is
// made as deploy/docker/Dockerfile makes it, without a container engine.
func (r *release) images() error {
	r.Images = map[string]string{}
	var linux []string
	for _, platform := range r.platforms {
		if strings.HasPrefix(platform, "linux_") {
			linux = append(linux, platform)
		}
	}
	if len(linux) == 0 {
		return errors.New("there is no platform of Linux")
	}
	programs, err := filepath.Glob(filepath.Join(r.from, linux[0], "bin", "*"))
	if err != nil {
		return err
	}
	for _, program := range programs {
		if err := r.image(filepath.Base(program), linux); err != nil {
			return fmt.Errorf("image of %s: %w", filepath.Base(program), err)
		}
	}
	return nil
}

func (r *release) image(process string, platforms []string) (err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		image, err := r.imageOf(process, platform)
		if err != nil {
			return err
		}
		_, arch, _ := strings.Cut(platform, "_")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	r.Images[process] = digest.String()
	folder, err := os.MkdirTemp("", "doorward-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	to, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	err = to.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.Version,
		"io.containerd.image.name":          "docker.io/doorward/" + process + ":" + r.Version, // the name after docker load
	}))
	if err != nil {
		return err
	}
	files, err := filesOf(folder, "")
	if err != nil {
		return err
	}
	return r.pack(fmt.Sprintf("images/%s_%s.oci.tar", process, r.Version), "", files)
}

func (r *release) imageOf(process, platform string) (v1.Image, error) {
	made := filepath.Join(r.from, platform)
	system, err := filesOf(filepath.Join(made, "root"), "")
	if err != nil {
		return nil, err
	}
	layers := [][]file{
		append(system, file{name: "home/nonroot/", mode: 0o755, owner: nonroot}),
		{{name: "sbom.cdx.json", path: filepath.Join(made, "sbom", process+".cdx.json")}},
		{{name: "service", path: filepath.Join(made, "bin", process), mode: 0o755}},
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range layers {
		var content bytes.Buffer
		if err := writeTar(&content, r.at, "", files); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(
			func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	_, config.Architecture, _ = strings.Cut(platform, "_")
	config.OS, config.Created = "linux", v1.Time{Time: r.at}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nonroot, nonroot), Env: []string{"HOME=/home/nonroot"}, Entrypoint: []string{"/service"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/service", "--probe"}, Interval: 5 * time.Second, Timeout: 3 * time.Second, StartPeriod: 30 * time.Second,
		},
		Labels: map[string]string{
			"org.opencontainers.image.source":   "https://github.com/doorward/doorward",
			"org.opencontainers.image.version":  r.Version,
			"org.opencontainers.image.revision": r.Commit,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}
