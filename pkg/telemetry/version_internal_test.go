package telemetry

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionOfACheckoutIsItsCommit(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "1403b05f723481c5e399ef396807a20880a3e1b9"}
	modified := func(value string) debug.BuildSetting { return debug.BuildSetting{Key: "vcs.modified", Value: value} }
	for _, c := range []struct {
		name, main string
		settings   []debug.BuildSetting
		want       string
	}{
		{"a version of the module", "v1.2.3", []debug.BuildSetting{commit}, "v1.2.3"},
		{"a checkout", "(devel)", []debug.BuildSetting{commit, modified("false")}, "1403b05f7234"},
		{"a checkout with changes", "(devel)", []debug.BuildSetting{modified("true"), commit}, "1403b05f7234-dirty"},
		{"a test", "", []debug.BuildSetting{commit}, "1403b05f7234"},
		{"a build that stamps no commit", "(devel)", nil, "unknown"},
	} {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.settings}); got != c.want {
			t.Errorf("%s has the version %q, want %q", c.name, got, c.want)
		}
	}
}
