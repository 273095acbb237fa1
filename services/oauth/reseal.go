package oauth

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/services/oauth/store"
)

// Reseal is the worker that, once at each start, seals the secrets of API keys
// again that are under another than the active master key. When it has said
// so in the log, the older master keys can be taken out of the configuration.
func (s *Service) Reseal(ctx context.Context) error {
	total := 0
	for ctx.Err() == nil {
		n, err := s.resealBatch(ctx)
		total += n
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "API keys stay under a former master key for now", "error", err.Error())
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
		slog.InfoContext(ctx, "API keys are under the active master key now; the former can be dropped", "keys", total)
	}
	<-ctx.Done()
	return nil
}

func (s *Service) resealBatch(ctx context.Context) (n int, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		keys, err := tx.LockUnmarked(ctx, s.ring.Mark(), batch)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k, err = s.unsealed(k, nil); err != nil {
				return err
			}
			if err := tx.SetSealed(ctx, k.TenantID, k.ID, s.ring.Seal(k.Secret, keyPurpose(k.ID))); err != nil {
				return err
			}
		}
		n = len(keys)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
