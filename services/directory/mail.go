package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/macro"
)

// Mail returns what a mail of a workflow to an account is made of: its template and the values of
// macros. It returns apierr.NotFound when the account was deleted, the workflow is disabled, or
// the directory is a mirror, which has no workflows. The notification service renders and sends it
// (services/notification/mailcontent.go).
func (s *Service) Mail(ctx context.Context, in directoryapi.MailOf) (directoryapi.Mail, error) {
	if in.Workflow == directoryapi.SigningUp {
		return s.signUpMail(ctx, in)
	}
	var mail directoryapi.Mail
	var err error
	if mail.Account, err = s.store.Account(ctx, in.Tenant, in.Account); err != nil {
		return mail, err
	}
	at := id.Ref{Tenant: in.Tenant, ID: mail.Account.DirectoryID}
	if mail.Directory, err = s.store.Directory(ctx, at.Tenant, at.ID); err != nil {
		return mail, err
	}
	if in.Workflow == directoryapi.FactorAdded || in.Workflow == directoryapi.FactorRemoved {
		mail.Template = directoryapi.EmailTemplate{TenantID: in.Tenant, Workflow: in.Workflow, Unchanged: true}
		return mail, nil
	}
	on, err := s.isWorkflowEnabled(ctx, at.Tenant, at.ID, in.Workflow)
	if err != nil {
		return mail, err
	}
	if !on || mail.Directory.Mirror() {
		return mail, apierr.NotFound.Because("the workflow %s of the directory is disabled", in.Workflow)
	}
	if mail.Template, err = s.store.Template(ctx, at.Tenant, at.ID, in.Workflow); err != nil {
		return mail, err
	}
	if in.Workflow == directoryapi.Reset || in.Workflow == directoryapi.ExistingAccount {
		policy, err := s.store.PasswordPolicy(ctx, at.Tenant, at.ID)
		if err != nil {
			return mail, err
		}
		mail.ResetTokenTTL = policy.ResetTokenTTL
	}
	texts := mail.Template.Subject + mail.Template.TextBody + mail.Template.HTMLBody
	if mail.AccountData, err = customDataValues(ctx, s.CustomData().Accounts, id.Ref{Tenant: in.Tenant, ID: in.Account},
		texts,
		"account.customData."); err != nil {
		return mail, err
	}
	mail.DirectoryData, err = customDataValues(ctx, s.CustomData().Directories, at, texts,
		"account.directory.customData.")
	return mail, err
}

// isWorkflowEnabled reports whether the policies of a directory send the mails of a workflow.
func (s *Service) isWorkflowEnabled(ctx context.Context, tenant, directory id.ID,
	workflow directoryapi.Workflow) (bool, error) {
	creation, err := s.store.CreationPolicy(ctx, tenant, directory)
	if err != nil {
		return false, err
	}
	password, err := s.store.PasswordPolicy(ctx, tenant, directory)
	if err != nil {
		return false, err
	}
	status := map[directoryapi.Workflow]string{
		directoryapi.Verification:        creation.VerificationEmailStatus,
		directoryapi.VerificationSuccess: creation.VerificationSuccessEmailStatus,
		directoryapi.Welcome:             creation.WelcomeEmailStatus,
		directoryapi.ExistingAccount:     creation.VerificationEmailStatus,
		directoryapi.Reset:               password.ResetEmailStatus,
		directoryapi.ResetSuccess:        password.ResetSuccessEmailStatus,
	}
	return status[workflow] == directoryapi.Enabled, nil
}

// customDataValues returns the values of those keys of an owner's customData that macros of a text
// name. The document is not read where no macro names a key of it.
func customDataValues(ctx context.Context, data customdata.Store, owner id.Ref,
	text, prefix string) (map[string]string, error) {
	keys := macro.Keys(text, prefix)
	if len(keys) == 0 {
		return nil, nil
	}
	r, err := data.Read(ctx, owner)
	return r.Document.Printed(keys), err
}
