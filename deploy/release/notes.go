package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// section is what CHANGELOG.md says of a release.
type section struct {
	from    *string // oldest release to come from
	notes   string
	upgrade string // under ### Upgrade
}

// upgradeFrom is the line that says from which release one comes.
var upgradeFrom = regexp.MustCompile(`(?m)^Upgrade from (?:([0-9]+\.[0-9]+\.[0-9]+) or later|no release)\.`)

// readChanges reads the section of a version.
func readChanges(path, version string) (s section, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	for part := range strings.SplitSeq("\n"+string(content), "\n## ") {
		title, text, _ := strings.Cut(part, "\n")
		if word, _, _ := strings.Cut(title, " "); word != version {
			continue
		}
		s.notes, s.upgrade, _ = strings.Cut(text, "\n### Upgrade\n")
		found := upgradeFrom.FindStringSubmatch(s.upgrade)
		if found == nil {
			return s, fmt.Errorf("%s says of %s under ### Upgrade neither \"Upgrade from 1.2.3 or later.\" nor \"Upgrade from no release.\"",
				path, version)
		}
		if found[1] != "" {
			s.from = &found[1]
		}
		return s, nil
	}
	return s, fmt.Errorf("%s has no section ## %s", path, version)
}

// notes writes RELEASE_NOTES.md and UPGRADE.md.
func (r *release) notes() error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Doorward %s\n\n%s\n\nThe commit is %s.\n\n## Images\n\n| Process | Digest |\n|---|---|\n",
		r.Version, strings.TrimSpace(r.changes.notes), r.Commit)
	for _, process := range slices.Sorted(maps.Keys(r.Images)) {
		fmt.Fprintf(&b, "| %s | `%s` |\n", process, r.Images[process])
	}
	b.WriteString("\n## Is it genuine?\n\n```\nsha256sum --check SHA256SUMS\n" +
		"cosign verify-blob --insecure-ignore-tlog=true --key cosign.pub --signature SHA256SUMS.sig SHA256SUMS\n" +
		"openssl pkey -pubin -in cosign.pub -outform DER | sha256sum\n```\n\n" +
		"Without cosign: `base64 --decode SHA256SUMS.sig > sig; openssl dgst -sha256 -verify cosign.pub -signature sig SHA256SUMS`. " +
		"The last line prints the fingerprint of `cosign.pub`: compare it with that at " + repository + "/blob/main/SECURITY.md.\n")
	if err := r.write("RELEASE_NOTES.md", []byte(b.String())); err != nil {
		return err
	}
	skip := "There is no release to come from."
	if r.From != nil {
		skip = fmt.Sprintf("From %s or any later release one upgrades to %s at once: those between may be skipped. "+
			"From an earlier one upgrade to %s first.", *r.From, r.Version, *r.From)
	}
	text := fmt.Sprintf("# Upgrade to Doorward %s\n\n%s\n\n%s\n\nThe steps, and the way back, are in docs/operations.md (Upgrade): "+
		"a backup, `doorward migrate`, then the processes one after another.\n", r.Version, skip, strings.TrimSpace(r.changes.upgrade))
	return r.write("UPGRADE.md", []byte(text))
}

// The statement of in-toto, with the predicate of SLSA 1.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     predicate  `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder map[string]string `json:"builder"`
	}
)

const repository = "https://github.com/doorward/doorward"

// provenance writes which sources every file of the release was made of (SLSA). SHA256SUMS has it, so that the
// signature of that signs it too.
func (r *release) provenance() error {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	sums, err := r.sums()
	if err != nil {
		return err
	}
	for _, sum := range sums {
		s.Subject = append(s.Subject, resource{Name: sum.name, Digest: map[string]string{"sha256": sum.sha256}})
	}
	for _, process := range slices.Sorted(maps.Keys(r.Images)) {
		s.Subject = append(s.Subject, resource{
			Name: "doorward/" + process, Digest: map[string]string{"sha256": strings.TrimPrefix(r.Images[process], "sha256:")},
		})
	}
	s.Predicate.BuildDefinition = buildDefinition{
		BuildType:          repository + "/blob/main/deploy/release/README.md",
		ExternalParameters: map[string]string{"version": r.Version},
		ResolvedDependencies: []resource{
			{URI: "git+" + repository + "@refs/tags/v" + r.Version, Digest: map[string]string{"gitCommit": r.Commit}},
		},
	}
	s.Predicate.RunDetails.Builder = map[string]string{"id": repository + "/blob/main/deploy/release/release.sh"}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return r.write("provenance.intoto.jsonl", append(content, '\n'))
}

// checksum is a line of SHA256SUMS.
type checksum struct{ name, sha256 string }

// sums returns the checksums of all files of the release, sorted by their names.
func (r *release) sums() (sums []checksum, err error) {
	files, err := filesOf(r.to, "")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		sums = append(sums, checksum{f.name, hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(sums, func(a, b checksum) int { return strings.Compare(a.name, b.name) })
	return sums, nil
}

func (r *release) checksums() error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, sum := range sums {
		fmt.Fprintf(&b, "%s  %s\n", sum.sha256, filepath.ToSlash(sum.name))
	}
	return r.write("SHA256SUMS", b.Bytes())
}
