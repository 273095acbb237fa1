package directory

import (
	"regexp"
	"testing"

	"github.com/doorward/doorward/pkg/macro"
)

func TestDefaultMailsReadWellToWhoHasNoName(t *testing.T) {
	gap := regexp.MustCompile(`[ \n][,.!;]|  `)
	for _, template := range templateTexts {
		known := map[string]string{"account.username": "jo", "url": "https://id.example.test", "passwordPolicy.resetTokenLifetime": "24 hours"}
		if text := macro.Expand(template.text, known, func(value string) string { return value }); gap.MatchString(text) {
			t.Errorf("the mail of %s says:\n%s", template.workflow, text)
		}
	}
}
