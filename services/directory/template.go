package directory

import (
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
)

// templateText is what the mail of a workflow says until a client changes it.
type templateText struct {
	workflow                         directoryapi.Workflow
	name, description, subject, text string
}

// The names and subjects are those of resolutions, section 18.1.
var templateTexts = []templateText{
	{directoryapi.Verification, "Default Verification Email Template", "Asks a new user to confirm the email address.", "Verify your account",
		"Hello $!{account.givenName},\n\nplease confirm that this email address is yours by opening this link:\n\n$!{url}\n\nIf you did not register, there is nothing to do.\n"},
	{directoryapi.VerificationSuccess, "Default Verification Success Email Template", "Tells a user that the email address was confirmed.", "Your account has been confirmed",
		"Hello $!{account.givenName},\n\nthank you: your email address is confirmed and your account is ready.\n"},
	{directoryapi.Welcome, "Default Welcome Email Template", "Greets a new user.", "Your registration was successful",
		"Hello $!{account.givenName},\n\nwelcome! Your account is ready. Your user name is $!{account.username}.\n"},
	{directoryapi.Reset, "Default Password Reset Email Template", "Lets a user choose a new password.", "Reset your Password",
		"Hello $!{account.givenName},\n\nyou can choose a new password by opening this link:\n\n$!{url}\n\nThe link works for 24 hours. If you did not ask for it, there is nothing to do.\n"},
	{directoryapi.ResetSuccess, "Default Password Reset Success Email Template", "Tells a user that the password was changed.", "Your password has been changed",
		"Hello $!{account.givenName},\n\nyour password was changed. If that was not you, please tell us at once.\n"},
}

// defaultTemplates makes the templates of a new directory, one per workflow.
func defaultTemplates(d directoryapi.Directory, now time.Time) []directoryapi.EmailTemplate {
	templates := make([]directoryapi.EmailTemplate, 0, len(templateTexts))
	for _, t := range templateTexts {
		templates = append(templates, directoryapi.EmailTemplate{
			TenantID: d.TenantID, ID: id.New(now), DirectoryID: d.ID, Workflow: t.workflow, Name: t.name, Description: &t.description,
			Subject: t.subject, MimeType: "text/plain", TextBody: t.text, HTMLBody: asHTML(t.text), CreatedAt: now, ModifiedAt: now,
		})
	}
	return templates
}

// asHTML turns the plain text of a default template into its HTML form:
// paragraphs, and a link where the text shows one. The text is ours, so that
// there is nothing to escape.
func asHTML(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if paragraph == "$!{url}" {
			paragraph = `<a href="$!{url}">$!{url}</a>`
		}
		out.WriteString("<p>" + paragraph + "</p>\n")
	}
	return out.String()
}
