package telemetry

import (
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// The build of a release; deploy/docker/build.sh sets them.
var release, commit, date string

// next is the release that a build of a checkout comes before.
//
//go:embed VERSION
var next string

// Build says what a program was built from.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"date"` // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// CurrentBuild returns the build of this program. Outside of a release its version is that of the file VERSION
// with -dev and the commit behind it. What is not known is empty.
var CurrentBuild = sync.OnceValue(func() Build {
	b := Build{Version: release, Commit: commit, Date: date}
	if info, ok := debug.ReadBuildInfo(); ok && release == "" {
		b = buildOf(info)
	}
	b.Go, b.Platform = strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS+"/"+runtime.GOARCH
	return b
})

// Version returns the version of this program.
func Version() string { return CurrentBuild().Version }

// Print writes the build as --version prints it.
func (b Build) Print(out io.Writer, name string) {
	_, _ = fmt.Fprintf(out, "%s %s, go%s\ncommit %s\nplatform %s\n", name, b.Version, b.Go, b.Commit, b.Platform)
}

// buildOf returns the build of a checkout by the build information that Go writes into a program.
func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: strings.TrimSpace(next) + "-dev"}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
			b.Version += "+" + setting.Value[:min(12, len(setting.Value))] // as many as Go takes for its own versions
		case "vcs.time":
			b.Date = setting.Value
		}
	}
	return b
}
