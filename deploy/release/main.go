// Release makes the files of a release of what deploy/docker/build.sh has compiled; release.sh beside it runs it in
// the root of the repository. The same input makes the same bytes, but for the signature.
//
//	release make -version 1.0.0 -commit HASH -date TIME -from .work/release -to dist/1.0.0 [-key cosign.key]
//	release notice      prints NOTICE
//
// archive.go has archives of files, image.go the images, notice.go the licences, notes.go the notes and the
// provenance, signature.go the checksums and their signature.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("use: release make, or release notice")
	}
	if args[0] == "notice" {
		text, err := notice()
		if err != nil {
			return err
		}
		_, err = os.Stdout.WriteString(text)
		return err
	}
	r := &release{}
	var key string
	flags := flag.NewFlagSet("make", flag.ExitOnError)
	flags.StringVar(&r.Version, "version", "", "version")
	flags.StringVar(&r.Commit, "commit", "", "commit")
	flags.StringVar(&r.Date, "date", "", "time of the commit")
	flags.StringVar(&r.from, "from", "", "folder with a folder of build.sh for each platform, such as linux_amd64")
	flags.StringVar(&r.to, "to", "", "folder of the release")
	flags.StringVar(&key, "key", "", "private key that signs, of cosign or in PEM")
	_ = flags.Parse(args[1:]) // ends the process
	return r.make(key)
}

// release is a release, and release.json.
type release struct {
	Version string            `json:"version"`
	Commit  string            `json:"commit"`
	Date    string            `json:"date"`
	From    *string           `json:"from"`   // the oldest release to come from; null for the first
	Images  map[string]string `json:"images"` // digest of each process

	from, to  string
	at        time.Time // Date
	platforms []string  // such as linux_amd64
	changes   section
}

func (r *release) make(key string) (err error) {
	if r.at, err = time.Parse(time.RFC3339, r.Date); err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(r.from, "*_*"))
	if err != nil || len(folders) == 0 {
		return fmt.Errorf("%s has no folder of a platform, %w", r.from, err)
	}
	for _, folder := range folders {
		r.platforms = append(r.platforms, filepath.Base(folder))
	}
	if r.changes, err = readChanges("CHANGELOG.md", r.Version); err != nil {
		return err
	}
	r.From = r.changes.from
	steps := []func() error{r.checkNotice, r.programs, r.images, r.bills, r.chart, r.compose, r.manifest, r.notes, r.provenance}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := r.checksums(); err != nil || key == "" {
		return err
	}
	return r.sign(key)
}

// programs packs doorward for each platform.
func (r *release) programs() error {
	for _, platform := range r.platforms {
		files := []file{
			{name: "doorward", path: filepath.Join(r.from, platform, "bin", "doorward"), mode: 0o755},
			{name: "LICENSE", path: "LICENSE"},
			{name: "NOTICE", path: "NOTICE"},
		}
		name := fmt.Sprintf("doorward_%s_%s.tar.gz", r.Version, platform)
		if err := r.pack(name, strings.TrimSuffix(name, ".tar.gz")+"/", files); err != nil {
			return err
		}
	}
	return nil
}

// bills copies the bills of materials of all processes.
func (r *release) bills() error {
	bills, err := filepath.Glob(filepath.Join(r.from, r.platforms[len(r.platforms)-1], "sbom", "*.json"))
	for _, bill := range bills {
		content, readErr := os.ReadFile(bill)
		if err = errors.Join(err, readErr, r.write("sbom/"+filepath.Base(bill), content)); err != nil {
			return err
		}
	}
	return err
}

// chart packs the Helm chart, as helm package does, with the digests of the images.
func (r *release) chart() error {
	digests := []string{}
	for process, digest := range r.Images {
		if process != "mailbox" && process != "agent" { // which the chart does not run
			digests = append(digests, fmt.Sprintf("%s: %q", process, digest))
		}
	}
	slices.Sort(digests)
	const folder = "deploy/helm/doorward"
	replaced := map[string][][2]string{
		"Chart.yaml": {
			{"\nversion: 0.1.0\n", "\nversion: " + r.Version + "\n"},
			{"\nappVersion: \"0.1.0\"\n", "\nappVersion: \"" + r.Version + "\"\n"},
		},
		"values.yaml": {{"\n  digests: {}\n", "\n  digests: { " + strings.Join(digests, ", ") + " }\n"}},
	}
	files, err := filesOf(folder, "")
	if err != nil {
		return err
	}
	for i, f := range files {
		for _, change := range replaced[f.name] {
			content := string(files[i].content)
			if content == "" {
				read, err := os.ReadFile(f.path)
				if err != nil {
					return err
				}
				content = string(read)
			}
			if !strings.Contains(content, change[0]) {
				return fmt.Errorf("%s has no line %q", f.path, strings.TrimSpace(change[0]))
			}
			files[i].content = []byte(strings.Replace(content, change[0], change[1], 1))
		}
	}
	return r.pack("doorward-"+r.Version+".tgz", "doorward/", files)
}

// compose packs what one machine needs to run the images, with the same folders as the repository.
func (r *release) compose() error {
	files := []file{
		{name: "compose.yaml", path: "compose.yaml"},
		{name: "deploy/docker/secrets.sh", path: "deploy/docker/secrets.sh", mode: 0o755},
	}
	more, err := filesOf("deploy/compose", "deploy/compose/")
	if err != nil {
		return err
	}
	return r.pack("compose_"+r.Version+".tar.gz", "compose_"+r.Version+"/", append(files, more...))
}

func (r *release) manifest() error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return r.write("release.json", append(content, '\n'))
}
