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

// countMail counts a mail that a caller without an API key requests, and reports whether the
// account is still within the rate limit of mails for the workflow: somebody who knows an address
// must not be able to flood its mailbox.
func (s *Service) countMail(ctx context.Context, tx *store.Tx, tenant, account id.ID, workflow directoryapi.Workflow) (bool, error) {
	counted, err := tx.AddCount(ctx, tenant, "mails/"+string(workflow)+"/"+account.String(), s.now(), mailWindow)
	return counted.Count <= directoryapi.MaxAnonymousMails, err
}
