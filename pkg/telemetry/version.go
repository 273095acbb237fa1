package telemetry

import (
	"runtime/debug"
	"sync"
)

// release is the version of an image; deploy/docker/build.sh sets it.
var release string

// Version returns the release of this program. Outside of a release it is the commit of the
// checkout, with "-dirty" behind it if files were changed, or "unknown".
var Version = sync.OnceValue(func() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
})

// versionOf returns the version in the build information that Go writes into a program.
func versionOf(info *debug.BuildInfo) string {
	if version := info.Main.Version; version != "" && version != "(devel)" {
		return version
	}
	revision, dirty := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value[:min(12, len(setting.Value))] // as many as Go takes for its own versions
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return "unknown"
	}
	return revision + dirty
}
