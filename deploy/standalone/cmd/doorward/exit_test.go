package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/env"
)

// A command says by its exit status whether it was called wrongly, refused something, or could not reach a server.
func TestTheExitStatusSaysWhy(t *testing.T) {
	const away = "DATABASE_URL=postgres://jo@localhost:1/none?connect_timeout=1"
	folder := "DOORWARD_DATA_DIR=" + t.TempDir()
	key := "DOORWARD_MASTER_KEY=k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for _, c := range []struct {
		call      string
		variables []string
		want      int
		says      string
	}{
		{"version", nil, 0, ""},
		{"tenant", nil, 0, ""},
		{"none", nil, 2, "none"},
		{"tenant none", nil, 2, "none"},
		{"migrate --none", nil, 2, "--none"},
		{"migrate here", nil, 2, "here"},
		{"admin key", []string{away}, 2, "tenant"},
		{"tenant suspend --reason unpaid", []string{away}, 2, "tenant"},
		{"tenant show", []string{away}, 2, "tenant"},
		{"tenant delete --tenant calm-otter", []string{away}, 2, "--reason"},
		{"tenant usage --by week", []string{away}, 2, "hour, day or month"},
		{"deadletters drop", []string{away}, 2, "--all"},
		{"deadletters list", []string{away}, 2, "KAFKA_BROKERS"},
		{"backup", []string{folder}, 2, "folder"},
		{"backup here", []string{away}, 2, "docs/backup.md"},
		{"events rewind --to yesterday", []string{away, key}, 6, "localhost"},
		{"admin key --tenant calm-otter", []string{folder}, 2, "data folder"},
		{"migrate", []string{"DIRECTORY_DATABASE_URL=postgres://jo@localhost:1/none"}, 2, "missing"},
		{"logins --tenant calm-otter --login jo --since 31d", []string{away}, 2, "--since"},
		{"logins --tenant calm-otter --login jo", []string{away}, 6, "localhost"},
		{"migrate", []string{away}, 6, "localhost"},
		{"admin key --tenant calm-otter", []string{away, key}, 6, "localhost"},
		{"deadletters drop --all", []string{away}, 6, "localhost"},
		{"deadletters list", []string{"KAFKA_BROKERS=localhost:1"}, 6, "refused"},
		{"doctor", []string{away, key, "KAFKA_BROKERS=localhost:1"}, 1, "check"},
	} {
		source = env.New(c.variables)
		root := commands()
		root.SetArgs(strings.Fields(c.call))
		root.SetOut(io.Discard)
		var stderr bytes.Buffer
		if got := execute(t.Context(), root, &stderr); got != c.want || !strings.Contains(stderr.String(), c.says) ||
			strings.Contains(stderr.String(), "usage:") {
			t.Errorf("doorward %s with %v ends with %d, want %d, and says %q", c.call, c.variables, got, c.want, stderr.String())
		}
	}
}
