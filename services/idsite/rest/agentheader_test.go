package rest

import "testing"

// A deployment with a word of its own lets in the header by both names.
func TestTheAgentHeaderHasBothNames(t *testing.T) {
	for title, want := range map[string]string{"Service": "X-Service-Agent", "Acme": "X-Acme-Agent, X-Service-Agent"} {
		if got := (&handlers{aliasTitle: title}).agentHeader(); got != want {
			t.Errorf("of %s it is %q, want %q", title, got, want)
		}
	}
}
