package directory

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// mailWindow is the period within which directoryapi.MaxAnonymousMails mails are allowed.
const mailWindow = time.Hour

// allowMail is the rate limit (throttling, resend) of mails that callers without an API key request:
// it counts a mail of a workflow, and reports whether the account is still within the limit. Somebody
// who knows an address must not be able to flood its mailbox.
func (s *Service) allowMail(ctx context.Context, tx *store.Tx, tenant, account id.ID,
	workflow directoryapi.Workflow) (bool, error) {
	counted, err := tx.AddCount(ctx, tenant, "mails/"+string(workflow)+"/"+account.String(), s.now(), mailWindow)
	return counted.Count <= directoryapi.MaxAnonymousMails, err
}
