package directory

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// mailWindow is the time in which directoryapi.MaxAnonymousMails is counted.
const mailWindow = time.Hour

// mayMail counts a mail that a caller without an API key asks for, and reports
// whether it is within the limit of the workflow for the account: a stranger who
// knows an address must not fill its mailbox.
func (s *Service) mayMail(ctx context.Context, tx *store.Tx, tenant, account id.ID, workflow directoryapi.Workflow) (bool, error) {
	count, err := tx.AddCount(ctx, tenant, "mails/"+string(workflow)+"/"+account.String(), s.now(), mailWindow)
	return count.Count <= directoryapi.MaxAnonymousMails, err
}
