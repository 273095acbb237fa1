package oauth

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// secondStep is what the first step of a login states about the second step, the second
// factor (MFA).
type secondStep struct {
	passed   bool     // a second factor was verified already
	required bool     // a second factor is required, whatever the application requires
	types    []string // types of factor that are allowed with required; empty: all
}

// readSecondStep reads the claims of an assertion. The claim require_mfa has the types of
// factor that the request to the hosted login allowed; the claim amr has the member mfa
// where the user has passed one of them (RFC 8176, section 2).
func readSecondStep(claims secure.Claims) (step secondStep) {
	methods, _ := claims["amr"].([]any)
	step.passed = slices.Contains(methods, any("mfa"))
	allowed, isList := claims["require_mfa"].([]any)
	step.required = len(allowed) > 0 || (claims["require_mfa"] != nil && !isList)
	for _, each := range allowed {
		text, _ := each.(string)
		kind := strings.ToLower(text)
		if slices.Contains(mfaapi.Types, kind) {
			step.types = append(step.types, kind)
		}
	}
	return step
}

// completeLogin completes a login whose first step has succeeded: it issues tokens, or
// returns the error that demands a second factor (docs/interface/oauth.md#second-factors).
func (s *Service) completeLogin(ctx context.Context, in TokenRequest, user subject, step secondStep) (IssuedTokens, error) {
	if err := s.requireSecondStep(ctx, in, user, step); err != nil {
		return IssuedTokens{}, err
	}
	return s.issueTokens(ctx, in, user, true)
}

// requireSecondStep returns the error that demands a second factor (MFA challenge), where the
// assertion or the web config of the application requires one that was not passed yet.
func (s *Service) requireSecondStep(ctx context.Context, in TokenRequest, user subject, step secondStep) error {
	if step.passed {
		return nil
	}
	if !step.required {
		config, err := s.cachedWebConfig(ctx, in.Tenant, in.Application)
		if err != nil || !config.MFA.Required {
			return err
		}
		step.types = config.MFA.FactorTypes
	}
	second, err := s.peers.MFA.BeginSecondStep(ctx, mfaapi.BeginSecondStep{
		Tenant: in.Tenant, Application: in.Application, Account: user.account, Organization: user.organization, Types: step.types,
	})
	if err != nil {
		return withOAuthError(err, "access_denied")
	}
	return actionRequiredError(second)
}

// actionRequiredError returns the error whose members say what the user has to do: enroll a
// factor, select one, or answer a challenge.
func actionRequiredError(second mfaapi.SecondStep) error {
	err := apierr.BadRequest.Saying("Another step is needed to log in.").Because("the login needs a second factor").
		With("error", "access_denied").With("error_description", "Action required").With("action", second.Action)
	if second.State != "" {
		err = err.With("state", second.State.Reveal())
	}
	factors := []map[string]string{}
	for _, f := range second.Factors {
		shown := map[string]string{"type": f.Type, "hint": f.Hint}
		if second.Action == mfaapi.Challenge {
			return err.With("factor", shown)
		}
		shown["state"] = f.State.Reveal()
		factors = append(factors, shown)
	}
	if second.Action == mfaapi.Select {
		return err.With("factors", factors)
	}
	return err.With("allowedFactorTypes", second.AllowedFactorTypes)
}
