package directory

import (
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/macro"
)

func TestDefaultMailsReadWellToWhoHasNoName(t *testing.T) {
	// Without an application and a given name, as the notification service has them.
	gap := regexp.MustCompile(`[ \n][,.!;]|  `)
	for _, template := range templateTexts {
		known := map[string]string{
			"greeting": "Hello,", "sender.name": "Shop", "account.username": "jo", "url": "https://id.example.test",
			"passwordPolicy.resetTokenLifetime": "24 hours",
		}
		if text := macro.Expand(withDefaultTexts(directoryapi.EmailTemplate{
			Workflow: template.workflow, Unchanged: true,
		}).TextBody, known, func(value string) string { return value }); gap.MatchString(text) ||
			!strings.HasPrefix(text, "Hello,\n\n") || !strings.Contains(text, "Shop") {
			t.Errorf("the mail of %s says:\n%s", template.workflow, text)
		}
	}
}

// The texts of an earlier release are stored, and are not shown where no tenant has changed them.
func TestAnUnchangedTemplateHasTheTextsOfThisRelease(t *testing.T) {
	for _, template := range templateTexts {
		stored := directoryapi.EmailTemplate{
			Workflow: template.workflow, Unchanged: true, Subject: "old", TextBody: "old", HTMLBody: "old",
			MimeType: "text/html",
		}
		if shown := withDefaultTexts(stored); !isDefaultText(shown) || shown.TextBody == "old" {
			t.Errorf("the unchanged template of %s shows %+v", template.workflow, shown)
		}
		stored.Unchanged = false
		if shown := withDefaultTexts(stored); isDefaultText(shown) || shown != stored {
			t.Errorf("the changed template of %s shows %+v", template.workflow, shown)
		}
	}
}
