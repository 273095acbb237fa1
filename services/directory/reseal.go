package directory

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// sealed are the columns of sealed values and what each value is sealed for.
var sealed = []struct {
	column  store.SealedColumn
	purpose func(id.ID) string
}{
	{store.VerificationTokens, events.MailTokenPurpose},
	{store.ResetKeys, resetKeyPurpose},
	{store.ClientSecrets, clientSecretPurpose},
	{store.AgentPasswords, agentPasswordPurpose},
	{store.SAMLPrivateKeys, samlKeyPurpose},
	{store.ProviderDataSecrets, providerTokensPurpose},
}

// Reseal is the worker that, once at each start, seals again what is sealed under
// another than the active master key. When it has said so in the log, the older
// master keys can be taken out of the configuration.
func (s *Service) Reseal(ctx context.Context) error {
	total := 0
	for i := 0; i < len(sealed) && ctx.Err() == nil; {
		n, err := s.resealBatch(ctx, sealed[i].column, sealed[i].purpose)
		total += n
		switch {
		case err != nil && ctx.Err() == nil:
			slog.WarnContext(ctx, "some secrets stay under a former master key for now", "error", err.Error())
			select {
			case <-ctx.Done():
			case <-time.After(purgeEvery):
			}
		case n == 0:
			i++
		}
	}
	if total > 0 {
		slog.InfoContext(ctx, "secrets are under the active master key now; the former can be dropped", "secrets", total)
	}
	<-ctx.Done()
	return nil
}

func (s *Service) resealBatch(ctx context.Context, column store.SealedColumn, purpose func(id.ID) string) (n int, err error) {
	err = s.tx(ctx, func(tx *store.Tx) error {
		values, err := tx.LockUnmarked(ctx, column, s.ring.Mark(), batch)
		if err != nil {
			return err
		}
		for _, v := range values {
			secret, err := s.ring.Open(v.Value, purpose(v.ID))
			if err != nil {
				return err
			}
			v.Value = s.ring.Seal(secret, purpose(v.ID))
			if err := tx.Reseal(ctx, column, v); err != nil {
				return err
			}
		}
		n = len(values)
		return nil
	})
	return n, err
}
