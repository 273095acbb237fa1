package telemetry

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

func TestTheVersionOfACheckoutComesBeforeTheNextRelease(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	before := strings.TrimSpace(next) + "-dev"
	for _, c := range []struct {
		name     string
		settings []debug.BuildSetting
		want     Build
	}{
		{
			"a checkout", []debug.BuildSetting{
				setting("vcs.revision", "1403b05f723481c5e399ef396807a20880a3e1b9"), setting("vcs.time", "2026-11-28T03:00:00Z"),
			},
			Build{Version: before + "+1403b05f7234", Commit: "1403b05f723481c5e399ef396807a20880a3e1b9", Date: "2026-11-28T03:00:00Z"},
		},
		{"a build that stamps no commit", nil, Build{Version: before}},
	} {
		if got := buildOf(&debug.BuildInfo{Settings: c.settings}); got != c.want {
			t.Errorf("%s has the build %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestABuildIsPrintedOnThreeLines(t *testing.T) {
	var out bytes.Buffer
	Build{Version: "1.0.0", Commit: "1403b05f", Go: "1.26.11", Platform: "linux/amd64"}.Print(&out, "doorward")
	if want := "doorward 1.0.0, go1.26.11\ncommit 1403b05f\nplatform linux/amd64\n"; out.String() != want {
		t.Errorf("the build is printed as %q, want %q", out.String(), want)
	}
}
