package mfa

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/services/mfa/store"
)

// Reseal is the worker that, once at each start, seals the secrets of
// authenticators again that are under another than the active master key. When
// it has said so in the log, the older master keys can be taken out of the
// configuration, once the challenges that were open have ended.
func (s *Service) Reseal(ctx context.Context) error {
	total := 0
	for ctx.Err() == nil {
		n, err := s.resealBatch(ctx)
		total += n
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "secrets of authenticators stay under a former master key for now", "error", err.Error())
			timer := time.NewTimer(PurgeEvery)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		if n == 0 {
			break
		}
	}
	if total > 0 {
		slog.InfoContext(ctx, "secrets of authenticators are under the active master key now; the former can be dropped", "factors", total)
	}
	<-ctx.Done()
	return nil
}

func (s *Service) resealBatch(ctx context.Context) (n int, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		factors, err := tx.LockUnmarked(ctx, s.ring.Mark(), batch)
		if err != nil {
			return err
		}
		for _, f := range factors {
			secret, err := s.ring.Open(f.SecretSealed, secretPurpose(f.ID))
			if err != nil {
				return err
			}
			if err := tx.SetSealed(ctx, f.TenantID, f.ID, s.ring.Seal(secret, secretPurpose(f.ID))); err != nil {
				return err
			}
		}
		n = len(factors)
		return nil
	})
	return n, err
}
