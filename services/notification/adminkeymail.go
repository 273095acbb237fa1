package notification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/mailtext"
	"github.com/doorward/doorward/services/notification/store"
)

// adminKeyAlert is the workflow of the mail that tells the owner of a tenant that an operator has created an API key
// for it (doorward admin key). Directories have no email template for it, and the mail always goes through the
// deployment's server: that of the tenant may be in the hands of whoever asked for the key.
const adminKeyAlert directoryapi.Workflow = mailtext.AdminKey

// adminKeyCreated adds that mail. What it says of the key is in the message of its delivery.
func (s *Service) adminKeyCreated(ctx context.Context, e events.Envelope, event events.AdminKeyCreated) error {
	message, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return s.enqueueMails(ctx, e, store.Delivery{AccountID: event.Account, Message: string(message)}, adminKeyAlert)
}

// adminKeyContent returns the content of that mail.
func (s *Service) adminKeyContent(ctx context.Context, d store.Delivery) (mailContent, error) {
	content := mailContent{delivery: d}
	var event events.AdminKeyCreated
	if err := json.Unmarshal([]byte(d.Message), &event); err != nil {
		return content, permanentError{fmt.Errorf("read what the mail says: %w", err)}
	}
	if err := s.addOwner(ctx, &content); err != nil {
		return content, err
	}
	content.Template = directoryapi.EmailTemplate{Workflow: adminKeyAlert, Unchanged: true}
	content.values = map[string]string{
		"adminKey.id": event.Key, "adminKey.createdAt": event.At.UTC().Format("2006-01-02 15:04 MST"),
		"adminKey.operator": event.Operator, "adminKey.reason": "-",
	}
	if event.Reason != nil {
		content.values["adminKey.reason"] = *event.Reason
	}
	content.chooseTexts()
	return content, nil
}

// addOwner adds the owner of the tenant as the recipient of a mail. It returns errObsolete where there is none.
func (s *Service) addOwner(ctx context.Context, content *mailContent) (err error) {
	tenant := content.delivery.TenantID
	content.Account, err = s.peers.Directory.Owner(ctx, directoryapi.Ref{Tenant: tenant, ID: tenant})
	if errors.Is(err, apierr.NotFound) {
		return errObsolete
	}
	if err != nil {
		return fmt.Errorf("load the owner: %w", err)
	}
	return nil
}
