// Sbom prints what a Go program is made of as a bill of materials in CycloneDX:
//
//	go run deploy/docker/sbom/main.go program
//
// It reads what the compiler has written into the program, so that it names what is
// linked and nothing else, and the same program has the same bill.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime/debug"
)

type bill struct {
	Format        string `json:"bomFormat"`
	Specification string `json:"specVersion"`
	Version       int    `json:"version"`
	Metadata      struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Package string `json:"purl,omitempty"`
	// Properties has the sum of go.sum.
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func main() {
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(describe(info))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func describe(info *debug.BuildInfo) bill {
	b := bill{Format: "CycloneDX", Specification: "1.6", Version: 1}
	b.Metadata.Component = component{Ref: info.Path, Type: "application", Name: path.Base(info.Path)}
	of := dependency{Ref: info.Path}
	for _, module := range append([]*debug.Module{{Path: "std", Version: info.GoVersion}, &info.Main}, info.Deps...) {
		if module.Path == "" { // of a program that is no module
			continue
		}
		if module.Replace != nil {
			module = module.Replace
		}
		c := component{Type: "library", Name: module.Path, Version: module.Version, Package: "pkg:golang/" + module.Path + "@" + module.Version}
		if module.Version == "(devel)" || module.Version == "" { // of this repository
			c.Version, c.Package = "", "pkg:golang/"+module.Path
		}
		if module.Sum != "" {
			c.Properties = []property{{"go:sum", module.Sum}}
		}
		c.Ref = c.Package
		b.Components = append(b.Components, c)
		of.DependsOn = append(of.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{of}
	return b
}
