package directory

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/macro"
)

func TestDefaultMailsReadWellToWhoHasNoName(t *testing.T) {
	// Without an application and a given name, as the notification service has them.
	gap := regexp.MustCompile(`[ \n][,.!;]|  `)
	for _, template := range templateTexts {
		known := map[string]string{"greeting": "Hello,", "sender.name": "Shop", "account.username": "jo", "url": "https://id.example.test", "passwordPolicy.resetTokenLifetime": "24 hours"}
		if text := macro.Expand(template.text, known, func(value string) string { return value }); gap.MatchString(text) ||
			!strings.HasPrefix(text, "Hello,\n\n") || !strings.Contains(text, "Shop") {
			t.Errorf("the mail of %s says:\n%s", template.workflow, text)
		}
	}
}

// The migration that rewrites default bodies writes those that new directories get.
func TestOlderDirectoriesGetTheDefaultMailsOfNewOnes(t *testing.T) {
	migration, err := os.ReadFile("store/migrations/20261122002500_default_mail_texts.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range templateTexts {
		for _, body := range []string{template.text, asHTML(template.text)} {
			if literal := "E'" + strings.ReplaceAll(body, "\n", `\n`) + "'"; !strings.Contains(string(migration), literal) {
				t.Errorf("the migration lacks %s", literal)
			}
		}
	}
}
