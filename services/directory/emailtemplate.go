package directory

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/macro"
	"github.com/doorward/doorward/pkg/mailtext"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of a template, in characters (docs/interface/limits.md#field-limits, but for the
// URL, which only has to fit into a request).
const (
	maxTemplateText = 255
	maxTemplateBody = 256_000
	maxLinkBaseURL  = 2000
)

// The kinds of mail.
const (
	plainText  = "text/plain"
	htmlText   = "text/html"
	bothBodies = "multipart/alternative"
)

// TemplateChange is the body that updates an email template.
type TemplateChange struct {
	Name             field.Text   `json:"name"`
	Description      field.Text   `json:"description"`
	FromName         field.Text   `json:"fromName"`
	FromEmailAddress field.Text   `json:"fromEmailAddress"`
	Subject          field.Text   `json:"subject"`
	MimeType         field.Text   `json:"mimeType"`
	TextBody         field.Text   `json:"textBody"`
	HTMLBody         field.Text   `json:"htmlBody"`
	DefaultModel     field.Object `json:"defaultModel"`
}

// templateModel is the member defaultModel of a template whose mail has a link.
type templateModel struct {
	LinkBaseURL field.Text `json:"linkBaseUrl"`
}

// Template returns an email template, or apierr.NotFound.
func (s *Service) Template(ctx context.Context, at id.Ref) (directoryapi.EmailTemplate, error) {
	t, err := s.store.TemplateByID(ctx, at.Tenant, at.ID)
	return s.withDefaults(t), err
}

// Templates returns the function that lists the templates of a workflow in a directory, of which
// there is one.
func (s *Service) Templates(workflow directoryapi.Workflow) func(context.Context, id.Ref,
	list.Query) (list.Page[directoryapi.EmailTemplate], error) {
	return func(ctx context.Context, directory id.Ref, query list.Query) (list.Page[directoryapi.EmailTemplate],
		error) {
		parent, err := s.Directory(ctx, directory)
		if err != nil {
			return list.Page[directoryapi.EmailTemplate]{}, err
		}
		query = query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt)
		page, err := s.store.ListTemplates(ctx, directory.Tenant, directory.ID, workflow, query)
		for i := range page.Items {
			page.Items[i] = s.withDefaults(page.Items[i])
		}
		return page, err
	}
}

// withDefaults fills in the deployment's sender and link where the template has none of its own, and
// its texts where no tenant has changed them.
func (s *Service) withDefaults(t directoryapi.EmailTemplate) directoryapi.EmailTemplate {
	t = withDefaultTexts(t)
	if t.FromName == nil {
		t.FromName = &s.cfg.Sender.Name
	}
	if t.FromEmailAddress == nil {
		t.FromEmailAddress = &s.cfg.Sender.Address
	}
	if link := s.defaultLinkBaseURL(t); link != "" && t.LinkBaseURL == nil {
		t.LinkBaseURL = &link
	}
	return t
}

// defaultLinkBaseURL is the URL of the deployment's page that the link of the mail leads to,
// unless the template has another; empty for a template without a link.
func (s *Service) defaultLinkBaseURL(t directoryapi.EmailTemplate) string {
	if t.Workflow.Page() == "" {
		return ""
	}
	return s.base.Host() + t.Workflow.Page()
}

// UpdateTemplate changes what the body names. It returns apierr.MirroredProperty for a template of
// a mirror directory, and apierr.TemplateWithoutLink where the mail would lack its link.
func (s *Service) UpdateTemplate(ctx context.Context, at id.Ref,
	in TemplateChange) (directoryapi.EmailTemplate, error) {
	t, err := s.store.TemplateByID(ctx, at.Tenant, at.ID)
	if err != nil {
		return t, err
	}
	if err := s.refuseMirrorPolicies(ctx, at.Tenant, t.DirectoryID); err != nil {
		return t, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if t, err = tx.LockTemplate(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		t = withDefaultTexts(t)
		errs := in.applyTexts(&t)
		s.applyDefaults(&t, in, &errs)
		if err := errs.First(); err != nil {
			return err
		}
		if err := checkMacros(t); err != nil {
			return err
		}
		t.Unchanged = isDefaultText(t)
		t.ModifiedAt = s.now()
		return tx.UpdateTemplate(ctx, t)
	})
	return s.withDefaults(t), err
}

// applyTexts writes the texts of a body into a template and returns those that are invalid.
func (in TemplateChange) applyTexts(t *directoryapi.EmailTemplate) (errs field.Errors) {
	var err error
	errs.Enum(&t.MimeType, in.MimeType, "mimeType", plainText, htmlText, bothBodies)
	errs.Optional(&t.Description, in.Description, "description", maxDescription)
	for _, text := range []struct {
		in   field.Text
		name string
		to   *string
	}{{in.Name, "name", &t.Name}, {in.Subject, "subject", &t.Subject}} {
		if text.in.Present {
			*text.to, err = field.Required(text.in, text.name, maxTemplateText)
			errs.Add(err)
			errs.Add(checkHeaderText(text.name, *text.to))
		}
	}
	errs.Verbatim(&t.TextBody, in.TextBody, "textBody", maxTemplateBody, false)
	errs.Verbatim(&t.HTMLBody, in.HTMLBody, "htmlBody", maxTemplateBody, false)
	return errs
}

// applyDefaults writes the members for which the deployment has a default: the sender and the
// link.
func (s *Service) applyDefaults(t *directoryapi.EmailTemplate, in TemplateChange, errs *field.Errors) {
	var err error
	if in.FromName.Present {
		t.FromName, err = overrideOrDefault(t.FromName, in.FromName, "fromName", maxTemplateText, s.cfg.Sender.Name,
			checkHeaderText)
		errs.Add(err)
	}
	if in.FromEmailAddress.Present {
		t.FromEmailAddress, err = overrideOrDefault(t.FromEmailAddress, in.FromEmailAddress, "fromEmailAddress",
			maxTemplateText,
			s.cfg.Sender.Address, checkSender)
		errs.Add(err)
	}
	if in.DefaultModel.Present {
		errs.Add(s.applyDefaultModel(t, in))
	}
}

// applyDefaultModel writes the URL that the link of the mail leads to.
func (s *Service) applyDefaultModel(t *directoryapi.EmailTemplate, in TemplateChange) (err error) {
	model := templateModel{LinkBaseURL: field.Text{Present: true, Null: true}} // no model is the default one
	if in.DefaultModel.Given() {
		model = templateModel{}
		if err := field.Decode(in.DefaultModel.Value, &model, nil); err != nil {
			return err
		}
	}
	switch {
	case t.Workflow.Page() != "" && in.DefaultModel.Null:
		return nil
	case t.Workflow.Page() != "" && !model.LinkBaseURL.Null && strings.TrimSpace(model.LinkBaseURL.Value) == "":
		return apierr.Required.Because(
			"defaultModel.linkBaseUrl is required in a template whose mail has a link, and is not empty; " +
				"null stands for the deployment's own page")
	case t.Workflow.Page() != "":
		t.LinkBaseURL, err = overrideOrDefault(t.LinkBaseURL, model.LinkBaseURL, "linkBaseUrl", maxLinkBaseURL,
			s.defaultLinkBaseURL(*t), checkLink)
		return err
	case model.LinkBaseURL.Given():
		return apierr.UnusedProperty.Because("a template of the workflow %s has no link, and so no defaultModel",
			t.Workflow)
	}
	return nil
}

// overrideOrDefault reads a text that replaces a default of the deployment. It returns nil where
// the default applies: for null, and also for the default itself, so that a client that sends back
// what it has read does not pin the current default. The current text is not checked again
// (field.Unchanged).
func overrideOrDefault(
	current *string, in field.Text, name string, maxLength int, defaultText string, check func(name, text string) error,
) (*string, error) {
	if current != nil && field.Unchanged(in, *current) {
		return current, nil
	}
	in.Value = strings.TrimSpace(in.Value)
	if in.Null || in.Value == defaultText {
		return nil, nil
	}
	if in.Value == "" {
		return nil, apierr.TooShort.Because("%s is empty; null stands for the default of the deployment", name)
	}
	text, err := field.Optional(in, name, maxLength)
	if err != nil {
		return nil, err
	}
	return text, check(name, *text)
}

// checkSender validates the sender's address: an email (field.Email) without characters that SMTP
// cannot carry.
func checkSender(name, email string) error {
	if strings.ContainsAny(email, `<>"\`) {
		return apierr.Format.Because("%s holds a quote, a backslash or an angle bracket, which SMTP cannot carry", name)
	}
	return field.Email(name, email)
}

// checkHeaderText refuses line breaks and control characters, which could inject a header into the
// mail (header injection).
func checkHeaderText(name, text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
		return apierr.Format.Because("%s holds a line break or another control character", name)
	}
	return nil
}

// checkLink refuses what is no absolute URL, or is unsafe as a link in a mail.
func checkLink(name, text string) error {
	parsed, err := url.Parse(text)
	refused := err != nil || parsed.Scheme == "" || redirecturi.IsExecutable(parsed.Scheme) ||
		(parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Hostname() == "" ||
		strings.ContainsFunc(text, func(r rune) bool {
			return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune("\"<>\\`", r)
		})
	if refused {
		return apierr.Format.Because(
			"%s is not an absolute URL that can stand in a mail, such as https://example.com/verify or myapp://verify",
			name)
	}
	return nil
}

// linkMacros are the macros that put a token into the mail.
var linkMacros = []string{"url", "sptoken", "sptokenNameValuePair"}

// checkMacros refuses a template whose macros are malformed, and one whose mail needs a link but
// has no macro for it (docs/interface/mail.md#macros).
func checkMacros(t directoryapi.EmailTemplate) error {
	needsLink := t.Workflow == directoryapi.Verification || t.Workflow == directoryapi.Reset
	for _, body := range []struct {
		name, text string
		sent       bool
	}{
		{"subject", t.Subject, false},
		{"textBody", t.TextBody, t.MimeType != htmlText},
		{"htmlBody", t.HTMLBody, t.MimeType != plainText},
	} {
		names, err := macro.Names(body.text)
		if err != nil {
			return apierr.Format.Because("%s: %s", body.name, err)
		}
		hasLink := slices.ContainsFunc(names, func(name string) bool { return slices.Contains(linkMacros, name) })
		if body.sent && needsLink && !hasLink {
			return apierr.TemplateWithoutLink.Because(
				"%s, which is sent as %s, has none of the macros $!{url}, $!{sptoken} and $!{sptokenNameValuePair}",
				body.name, t.MimeType)
		}
	}
	return nil
}

// templateText describes the default template of a workflow.
type templateText struct {
	workflow          directoryapi.Workflow
	name, description string
}

// templateTexts are the default email templates; their names are those of
// docs/interface/mail.md#templates. Their subjects and bodies are the English ones of pkg/mailtext.
var templateTexts = []templateText{
	{directoryapi.Verification, "Default Verification Email Template", "Asks a new user to confirm the email address."},
	{directoryapi.VerificationSuccess, "Default Verification Success Email Template",
		"Tells a user that the email address was confirmed."},
	{directoryapi.Welcome, "Default Welcome Email Template", "Greets a new user."},
	{directoryapi.ExistingAccount, "Default Existing Account Email Template",
		"Tells a user who registers again that there is an account."},
	{directoryapi.Reset, "Default Password Reset Email Template", "Lets a user choose a new password."},
	{
		directoryapi.ResetSuccess, "Default Password Reset Success Email Template",
		"Tells a user that the password was changed.",
	},
}

// defaultTemplates returns the templates of a new directory, one for each workflow.
func defaultTemplates(d directoryapi.Directory, now time.Time) []directoryapi.EmailTemplate {
	templates := make([]directoryapi.EmailTemplate, 0, len(templateTexts))
	for _, t := range templateTexts {
		templates = append(templates, withDefaultTexts(directoryapi.EmailTemplate{
			TenantID: d.TenantID, ID: id.New(now), DirectoryID: d.ID, Workflow: t.workflow, Name: t.name,
			Description: &t.description,
			Unchanged:   true, CreatedAt: now, ModifiedAt: now,
		}))
	}
	return templates
}

// withDefaultTexts returns a template with the texts of this release, unless a tenant has changed them.
func withDefaultTexts(t directoryapi.EmailTemplate) directoryapi.EmailTemplate {
	if t.Unchanged {
		mail := mailtext.Of("en", string(t.Workflow), false)
		t.Subject, t.MimeType, t.TextBody, t.HTMLBody = mail.Subject, plainText, mail.Text, asHTML(mail.Text)
	}
	return t
}

// isDefaultText reports whether the texts of a template are those of this release.
func isDefaultText(t directoryapi.EmailTemplate) bool {
	builtin := withDefaultTexts(directoryapi.EmailTemplate{Workflow: t.Workflow, Unchanged: true})
	return t.Subject == builtin.Subject && t.MimeType == builtin.MimeType && t.TextBody == builtin.TextBody &&
		t.HTMLBody == builtin.HTMLBody
}

// asHTML turns the plain text of a default template into HTML: paragraphs, and links where the
// text has a URL. Nothing is escaped, as the texts are constants.
func asHTML(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		out.WriteString("<p>" + strings.ReplaceAll(paragraph, "$!{url}", `<a href="$!{url}">$!{url}</a>`) + "</p>\n")
	}
	return out.String()
}
