package openid

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
	"github.com/doorward/doorward/services/oauth/usercode"
)

const (
	// pollInterval is the time between two token requests of a device, and by how much that grows when it is too fast
	// (RFC 8628, section 3.5).
	pollInterval = 5 * time.Second
	// userCodeAttempts bounds how often a user code is drawn again that another device has.
	userCodeAttempts = 5
)

var errDevice = refuse("invalid_grant", "the device_code is unknown or used, or of another client or key")

// DeviceAuthorization is the answer to a device that asks for a login (RFC 8628, section 3.2).
type DeviceAuthorization struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int64  `json:"expires_in"`
	Interval                int64  `json:"interval"`
}

// AuthorizeDevice stores what a device asks for, until its user has answered.
func (s *Service) AuthorizeDevice(ctx context.Context, in Call) (out DeviceAuthorization, err error) {
	defer func() { s.Count(ctx, "openid device_authorization", err) }()
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	client, err := s.authenticateClient(ctx, i, in)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	if err := checkGrantType(client, relyingparty.GrantDevice); err != nil {
		return DeviceAuthorization{}, err
	}
	request := store.Login{}
	if request.JKT, err = s.checkProof(ctx, i, in, ""); err != nil {
		return DeviceAuthorization{}, err
	}
	if request.Audience, err = i.target(in.Form.text("resource")); err != nil {
		return DeviceAuthorization{}, err
	}
	request.Scopes, err = i.allowedScopes(client, in.Form.text("scope"), request.Audience, false)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	now, code := s.Now(), secure.Token(relyingparty.SecretLength)
	device := store.Device{
		TenantID: client.TenantID, Digest: secure.Digest(code), ApplicationID: i.app.ID, ClientID: client.ID,
		Status: store.DevicePending, Login: request, PollSeconds: int(pollInterval / time.Second), CreatedAt: now,
		ExpiresAt: now.Add(usercode.Age),
	}
	for range userCodeAttempts {
		device.UserCode = secure.UserCode()
		err = s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertDevice(ctx, device) })
		if !errors.Is(err, apierr.Exists) {
			break
		}
	}
	shown := device.UserCode[:4] + "-" + device.UserCode[4:]
	return DeviceAuthorization{
		DeviceCode: code.Reveal(), UserCode: shown, VerificationURI: i.url + "/device",
		VerificationURIComplete: i.url + "/device?user_code=" + shown, ExpiresIn: int64(usercode.Age / time.Second),
		Interval: int64(device.PollSeconds),
	}, err
}

// deviceClient returns the client of a device; one that may not act any more is apierr.NotFound.
func (s *Service) deviceClient(ctx context.Context, i issuer, device store.Device) (store.OpenIDClient, error) {
	client, err := s.findClient(ctx, i, device.ClientID.String())
	if errors.Is(err, apierr.Unauthorized) {
		err = apierr.NotFound
	}
	return client, err
}

// DeviceRequest returns what the device has asked for whose user code a user has typed, within the limits of guesses.
func (s *Service) DeviceRequest(ctx context.Context, in oauthapi.DeviceCode) (oauthapi.Authorization, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return oauthapi.Authorization{}, err
	}
	device, err := usercode.Guess(ctx, s.Store, i.ref(), in.UserCode, s.Now())
	if err != nil {
		return oauthapi.Authorization{}, err
	}
	client, err := s.deviceClient(ctx, i, device)
	if err != nil {
		return oauthapi.Authorization{}, err
	}
	scopes := append([]string{}, device.Login.Scopes...) // a consent to none has a list too
	return oauthapi.Authorization{
		Tenant: i.app.TenantID, Application: i.app.ID, Issuer: i.url, Client: clientOf(client, i.url), Scopes: scopes,
		Resource: device.Login.Audience, Consent: i.consent(scopes, client.Settings.Consent == relyingparty.ConsentRequired),
	}, nil
}

// AnswerDevice records once what the user of a device has answered.
func (s *Service) AnswerDevice(ctx context.Context, in oauthapi.DeviceAnswer) (oauthapi.Done, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return oauthapi.Done{}, err
	}
	return oauthapi.Done{}, s.Store.Tx(ctx, func(tx *store.Tx) error {
		device, err := tx.PendingDevice(ctx, i.ref(), usercode.Letters(in.UserCode), s.Now())
		if err != nil {
			return err
		}
		device.Status = store.DeviceRefused
		if in.Allowed {
			if err := checkSession(ctx, tx, i, in.Login); err != nil {
				return err
			}
			asked := device.Login
			device.Status, device.AccountID, device.Login = store.DeviceAllowed, in.Account, i.loginOf(in.Login)
			device.Login.Audience, device.Login.JKT = asked.Audience, asked.JKT
			device.Login.Scopes = slices.DeleteFunc(slices.Clone(asked.Scopes), func(name string) bool {
				return !slices.Contains(in.Scopes, name)
			})
		}
		return tx.AnswerDevice(ctx, device)
	})
}

// deviceGrant is the grant of a device (RFC 8628, section 3.4).
func (s *Service) deviceGrant(ctx context.Context, r request) (issue, error) {
	device, err := s.pollDevice(ctx, r)
	if err != nil {
		return issue{}, err
	}
	login := device.Login
	if !r.issued(login) {
		return issue{}, errDevice
	}
	login.JKT = r.jkt
	out, save, err := s.issueLogin(ctx, r, login, id.New(s.Now()), device.CreatedAt)
	if err != nil {
		return issue{}, err
	}
	out.save = func(ctx context.Context, tx *store.Tx) error {
		if err := tx.UseDevice(ctx, device); err != nil {
			if errors.Is(err, apierr.NotFound) {
				return errDevice
			}
			return err
		}
		return save(tx)
	}
	return out, nil
}

// pollDevice returns the device of a token request whose user has allowed what it asks for.
func (s *Service) pollDevice(ctx context.Context, r request) (device store.Device, err error) {
	refusal := errDevice
	err = s.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if device, err = tx.LockDevice(ctx, r.app.TenantID, secure.Digest(r.Form["device_code"])); err != nil {
			return err
		}
		interval := time.Duration(device.PollSeconds) * time.Second
		switch now := s.Now(); {
		case device.ClientID != r.client.ID || device.ApplicationID != r.app.ID:
		case !now.Before(device.ExpiresAt):
			refusal = refuse("expired_token", "the device_code has expired")
		case device.Status == store.DeviceRefused:
			refusal = refuse("access_denied", "the user has refused")
		case device.Login.JKT != "" && device.Login.JKT != r.jkt:
			refusal = refuse("invalid_dpop_proof", "the device_code is bound to another key")
		case device.Status == store.DeviceAllowed:
			refusal = nil
		case device.PolledAt != nil && now.Sub(*device.PolledAt) < interval:
			device.PollSeconds += int(pollInterval / time.Second)
			refusal = refuse("slow_down", "wait %d seconds before the next request", device.PollSeconds)
			tx.PolledDevice(device, now)
		default:
			refusal = refuse("authorization_pending", "the user has not answered yet")
			tx.PolledDevice(device, now)
		}
		return nil
	})
	if err == nil || errors.Is(err, apierr.NotFound) {
		err = refusal
	}
	return device, err
}
