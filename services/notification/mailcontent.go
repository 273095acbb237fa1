package notification

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/pkg/macro"
	"github.com/doorward/doorward/pkg/mailtext"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// mailContent is all that compose makes a mail of. loadMailContent loads it.
type mailContent struct {
	delivery store.Delivery
	directoryapi.Mail
	token           secure.Secret     // empty: the mail has no link
	language        string            // of the macros, and of the mail where it is the deployment's (pkg/mailtext)
	application     *string           // name of the application, if the mail names one
	homeURL         *string           // where users of the application begin, if it has that
	applicationData map[string]string // values of its customData that the template names
	values          map[string]string // of macros that this kind of mail alone has
}

// loadMailContent loads what a mail is made of: the account and the email template from the
// directory service, and the application. It returns errObsolete where the account does not
// exist, the workflow is off or the email address is verified meanwhile.
func (s *Service) loadMailContent(ctx context.Context, d store.Delivery) (mailContent, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch d.Workflow {
	case circuitAlert:
		return s.circuitAlertContent(ctx, d)
	case adminKeyAlert:
		return s.adminKeyContent(ctx, d)
	}
	content := mailContent{delivery: d}
	var err error
	content.Mail, err = s.peers.Directory.Mail(ctx,
		directoryapi.MailOf{Tenant: d.TenantID, Account: d.AccountID, Workflow: d.Workflow})
	if errors.Is(err, apierr.NotFound) {
		return content, errObsolete
	}
	if err != nil {
		return content, fmt.Errorf("ask for the template: %w", err)
	}
	if d.Workflow == directoryapi.Verification && content.Account.EmailVerificationStatus == directoryapi.Verified {
		return content, errObsolete // verified meanwhile: the token is void
	}
	if d.TokenSealed != nil {
		if content.token, err = s.ring.Open(d.TokenSealed, events.MailTokenPurpose(d.AccountID)); err != nil {
			return content, fmt.Errorf("open the token: %w", err)
		}
	}
	if err := s.addApplication(ctx, &content); err != nil && !errors.Is(err, apierr.NotFound) {
		return content, fmt.Errorf("ask for the application: %w", err)
	}
	content.chooseTexts()
	return content, nil
}

// chooseTexts gives a mail whose template no tenant has changed the texts of the deployment, in the
// language of the account's locale, else of the request that caused the mail, else in English. The macros
// of a template that was changed are in English.
func (content *mailContent) chooseTexts() {
	content.language = locale.Languages[0]
	if !content.Template.Unchanged {
		return
	}
	if content.Account.Locale != nil {
		content.delivery.Language = cmp.Or(locale.Lookup(*content.Account.Locale), content.delivery.Language)
	}
	content.language = cmp.Or(content.delivery.Language, content.language)
	if kind := content.delivery.Message; kind != "" && content.values == nil {
		content.values = map[string]string{"factor.name": mailtext.Factor(content.language, kind)}
	}
	mail := mailtext.Of(content.language, string(content.Template.Workflow), content.homeURL != nil)
	content.Template.Subject, content.Template.TextBody, content.Template.HTMLBody = mail.Subject, mail.Text, mail.HTML
	content.Template.MimeType = "multipart/alternative"
}

// addApplication adds what the mail says of the application that caused the event. Where only
// the name of the sender needs the application, a failure of the application service does not
// delay the mail.
func (s *Service) addApplication(ctx context.Context, content *mailContent) error {
	at := directoryapi.Ref{Tenant: content.delivery.TenantID, ID: content.delivery.ApplicationID}
	if at.ID.IsZero() {
		return nil
	}
	texts := content.Template.Subject + content.Template.TextBody + content.Template.HTMLBody
	isNamed := strings.Contains(texts, "{application.name}")
	isSender := content.Template.Unchanged || strings.Contains(texts, "{sender.name}") ||
		content.Template.FromName == nil && !s.cfg.FromNamed
	if isNamed || isSender {
		application, err := s.peers.Application.Application(ctx, at)
		if err != nil && isNamed {
			return err
		}
		if err == nil {
			content.application = &application.Name
			if home := application.Home(); home != "" {
				content.homeURL = &home
			}
			if application.Builtin {
				content.application = &s.cfg.From.Name
			}
		}
	}
	keys := macro.Keys(texts, "application.customData.")
	if len(keys) == 0 {
		return nil
	}
	data, err := s.peers.Application.ApplicationData(ctx, applicationapi.CustomDataRequest{Ref: at, Keys: keys})
	content.applicationData = data.Values
	return err
}
