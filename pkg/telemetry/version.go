package telemetry

import (
	"runtime/debug"
	"sync"
)

// release is the version of an image; deploy/docker/build.sh sets it.
var release string

// Version returns the release that this program is of; where it is none, the version
// that Go derives from the commit of the checkout, or "unknown".
var Version = sync.OnceValue(func() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unknown"
})
