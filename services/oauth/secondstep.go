package oauth

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// secondStep is what the first step of a login states about the second.
type secondStep struct {
	passed   bool     // a second factor was verified already
	demanded bool     // one is required, also where the application requires none
	types    []string // of factor that are allowed then; empty: all
}

// secondStepOf reads an assertion. Its claim require_mfa holds the types of
// factor that the request to the hosted login allowed; its claim amr has the
// member mfa when the user has passed one of them (RFC 8176, section 2).
func secondStepOf(claims secure.Claims) (step secondStep) {
	methods, _ := claims["amr"].([]any)
	step.passed = slices.Contains(methods, any("mfa"))
	required, isList := claims["require_mfa"].([]any)
	step.demanded = len(required) > 0 || (claims["require_mfa"] != nil && !isList)
	for _, each := range required {
		text, _ := each.(string)
		kind := strings.ToLower(text)
		if kind == mfaapi.SMS || kind == mfaapi.Authenticator {
			step.types = append(step.types, kind)
		}
	}
	return step
}

// logIn completes a login whose first step has succeeded: with tokens, or with the
// demand for a second step (docs/interface/oauth.md#second-factors).
func (s *Service) logIn(ctx context.Context, in TokenRequest, user holder, step secondStep) (Issued, error) {
	if err := s.demand(ctx, in, user, step); err != nil {
		return Issued{}, err
	}
	return s.issue(ctx, in, user, true)
}

// demand refuses a login that needs a second step.
func (s *Service) demand(ctx context.Context, in TokenRequest, user holder, step secondStep) error {
	if step.passed {
		return nil
	}
	if !step.demanded {
		config, err := s.webConfig(ctx, in.Tenant, in.Application)
		if err != nil || !config.MFA.Required {
			return err
		}
		step.types = config.MFA.FactorTypes
	}
	demanded, err := s.peers.MFA.BeginSecondStep(ctx, mfaapi.BeginSecondStep{
		Tenant: in.Tenant, Application: in.Application, Account: user.account, Organization: user.organization, Types: step.types,
	})
	if err != nil {
		return refused(err, "access_denied")
	}
	return actionRequired(demanded)
}

// actionRequired is the error whose members state what the user has to do.
func actionRequired(demanded mfaapi.SecondStep) error {
	err := apierr.BadRequest.Saying("Another step is needed to log in.").Because("the login needs a second factor").
		With("error", "access_denied").With("error_description", "Action required").With("action", demanded.Action)
	if demanded.State != "" {
		err = err.With("state", demanded.State.Reveal())
	}
	factors := []map[string]string{}
	for _, f := range demanded.Factors {
		shown := map[string]string{"type": f.Type, "hint": f.Hint}
		if demanded.Action == mfaapi.Challenge {
			return err.With("factor", shown)
		}
		shown["state"] = f.State.Reveal()
		factors = append(factors, shown)
	}
	if demanded.Action == mfaapi.Select {
		return err.With("factors", factors)
	}
	return err.With("allowedFactorTypes", demanded.AllowedFactorTypes)
}
