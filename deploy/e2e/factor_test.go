package e2e_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// totpCode returns the code that an authenticator shows at a time, made from its
// URI by RFC 6238 alone.
func totpCode(t testing.TB, keyURI string, at time.Time) string {
	t.Helper()
	uri, err := url.Parse(keyURI)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(uri.Query().Get("secret"))
	if err != nil || uri.Scheme != "otpauth" || uri.Host != "totp" {
		t.Fatalf("%q is not the URI of an authenticator: %v", keyURI, err)
	}
	mac := hmac.New(sha1.New, secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(at.Unix()/30)))
	sum := mac.Sum(nil)
	place := sum[len(sum)-1] & 0xf
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[place:])&0x7fffffff%1_000_000)
}

// wrongCode returns a code that is not the given one.
func wrongCode(code string) string {
	return strings.Map(func(r rune) rune { return '0' + (r-'0'+5)%10 }, code)
}

// awaitNotFound waits until an address answers 404: a deletion in one service reaches the
// others by an event.
func awaitNotFound(t testing.TB, address string) {
	t.Helper()
	err := e2e.AwaitFor(t.Context(), 30*time.Second, address+" to be gone", func(ctx context.Context) error {
		answer, err := client.Do(ctx, e2e.Request{Method: http.MethodGet, URL: address})
		if err == nil && answer.Status != http.StatusNotFound {
			err = errors.New(answer.String())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnAccountEnrolsAnAuthenticator(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator", "issuer": "Shop"})
	if factor.Text("accountName") != account.Text("username") || factor.Text("verificationStatus") != "UNVERIFIED" || factor.Text("base64QRImage") == "" {
		t.Errorf("the factor is %v", factor)
	}
	challenges := factor.Link(t, "challenges")

	wrong := wrongCode(totpCode(t, factor.Text("keyUri"), time.Now()))
	failed := client.Create(t, challenges, e2e.Object{"code": wrong})
	if failed.Text("status") != "FAILED" {
		t.Errorf("a wrong code is %s", failed.Text("status"))
	}
	challenge := client.WantObject(t, http.StatusCreated, e2e.Request{Method: http.MethodPost, URL: challenges + "?expand=factor"})
	if challenge.Text("status") != "CREATED" || challenge.Object("factor").Text("type") != "google-authenticator" {
		t.Errorf("the challenge is %v", challenge)
	}
	code := totpCode(t, factor.Text("keyUri"), time.Now())
	if answered := client.Update(t, challenge.Href(), e2e.Object{"code": code}); answered.Text("status") != "SUCCESS" {
		t.Errorf("the right code is %s", answered.Text("status"))
	}
	verified := client.Get(t, factor.Href()+"?expand=mostRecentChallenge,account,challenges(limit:1)")
	if verified.Text("verificationStatus") != "VERIFIED" || verified.Object("mostRecentChallenge").Text("status") != "SUCCESS" ||
		verified.Object("account").Text("email") != account.Text("email") || verified.Object("challenges").Number(t, "size") != 2 {
		t.Errorf("the factor is %v", verified)
	}

	t.Run("the code is spent", func(t *testing.T) {
		if again := client.Create(t, challenges, e2e.Object{"code": code}); again.Text("status") != "FAILED" {
			t.Errorf("the second time it is %s", again.Text("status"))
		}
		client.Refused(t, 400, 13112, post(challenge.Href(), e2e.Object{"code": code}))
	})
	t.Run("of fifty wrong codes at once eight are checked", func(t *testing.T) {
		statuses := sendConcurrently(t, 50, post(challenges, e2e.Object{"code": wrong}))
		if statuses[http.StatusCreated] != 8 || statuses[http.StatusBadRequest] != 42 {
			t.Errorf("fifty wrong codes are answered with %v; two were sent before, ten are allowed", statuses)
		}
		client.Refused(t, 400, 13113, post(challenges, e2e.Object{"code": wrong}))
	})
	t.Run("a challenge cannot be deleted", func(t *testing.T) {
		client.Refused(t, 405, 1100, e2e.Request{Method: http.MethodDelete, URL: challenge.Href()})
	})
}

func TestAnAccountHasPhones(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	phones, factors := account.Link(t, "phones"), account.Link(t, "factors")
	phone := client.Create(t, phones, e2e.Object{"number": "888 391 5282", "name": "Work"})
	if phone.Text("number") != "+18883915282" || phone.Text("verificationStatus") != "UNVERIFIED" {
		t.Errorf("the phone is %v", phone)
	}
	client.Refused(t, 409, 13102, post(phones, e2e.Object{"number": "+18883915282"}))
	client.Refused(t, 400, 13101, post(phones, e2e.Object{"number": "+1 12"}))

	factor := client.Create(t, factors+"?challenge=true&expand=phone,mostRecentChallenge", e2e.Object{"type": "sms", "phone": e2e.Object{"href": phone.Href()}})
	if factor.Object("phone").Text("name") != "Work" || factor.Object("mostRecentChallenge").Text("message") != "Your verification code is ${code}" {
		t.Errorf("the factor is %v", factor)
	}
	client.Refused(t, 400, 13105, post(factors, e2e.Object{"type": "SMS", "phone": e2e.Object{"number": "+18883915282"}}))
	client.Refused(t, 400, 13103, post(factor.Link(t, "challenges"), e2e.Object{"message": "a code"}))

	tenant := client.Tenant(t)
	found := client.Get(t, tenant.Link(t, "phones")+"?name=Work&expand=account").Items(t)
	if len(found) == 0 || found[len(found)-1].Object("account").Text("email") != account.Text("email") {
		t.Errorf("the tenant's phones are %v", found)
	}
	client.Delete(t, phone.Href())
	client.NotFound(t, factor.Href())
}

// awaitStatus waits until a challenge has a status: the delivery status of a text message
// reaches the service by an event.
func awaitStatus(t testing.TB, challenge, status string) {
	t.Helper()
	err := e2e.AwaitFor(t.Context(), 30*time.Second, "the challenge to be "+status, func(ctx context.Context) error {
		answer, err := client.Do(ctx, e2e.Request{Method: http.MethodGet, URL: challenge})
		if err == nil && !strings.Contains(string(answer.Body), `"status":"`+status+`"`) {
			err = errors.New(answer.String())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAPhoneIsVerifiedByTheCodeOfItsTextMessage(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	number := fmt.Sprintf("+1267555%04d", rand.IntN(10_000))
	factor := client.Create(t, account.Link(t, "factors")+"?challenge=true&expand=mostRecentChallenge", e2e.Object{"type": "SMS", "phone": e2e.Object{"number": number}})
	challenge := factor.Object("mostRecentChallenge").Href()
	text := client.AwaitMailWith(t, number, "Your verification code is ")
	code := strings.TrimPrefix(text.Text, "Your verification code is ")
	if text.Kind != "sms" || len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		t.Fatalf("the text is %+v", text)
	}
	awaitStatus(t, challenge, "WAITING_FOR_VALIDATION")

	if failed := client.Update(t, challenge, e2e.Object{"code": wrongCode(code)}); failed.Text("status") != "FAILED" {
		t.Errorf("a wrong code is %s", failed.Text("status"))
	}
	if right := client.Update(t, challenge, e2e.Object{"code": code}); right.Text("status") != "SUCCESS" {
		t.Errorf("the right code is %s", right.Text("status"))
	}
	client.Refused(t, 400, 13112, post(challenge, e2e.Object{"code": code}))
	verified := client.Get(t, factor.Href()+"?expand=phone")
	if verified.Text("verificationStatus") != "VERIFIED" || verified.Object("phone").Text("verificationStatus") != "VERIFIED" {
		t.Errorf("the factor is %v", verified)
	}
	client.Refused(t, 400, 13100, post(verified.Object("phone").Href(), e2e.Object{"number": "+12675555555"}))

	t.Run("the message is the application's own", func(t *testing.T) {
		client.Create(t, factor.Link(t, "challenges"), e2e.Object{"message": "Shop: ${code} is for you"})
		client.AwaitMailWith(t, number, " is for you")
	})
	t.Run("of fifty wrong codes at once five are checked", func(t *testing.T) {
		challenge := client.Create(t, factor.Link(t, "challenges"), e2e.Object{}).Href()
		statuses := sendConcurrently(t, 50, post(challenge, e2e.Object{"code": "0"}))
		if statuses[http.StatusOK] != 5 || statuses[http.StatusBadRequest] != 45 {
			t.Errorf("fifty wrong codes are answered with %v", statuses)
		}
	})
	t.Run("a receipt that nobody signed is refused", func(t *testing.T) {
		client.Want(t, http.StatusForbidden, e2e.Request{
			Method: http.MethodPost, URL: client.Key.HostURL() + "/sms/receipts/" + lastSegment(client.Tenant(t).Href()) + "/" + lastSegment(challenge),
			Body: url.Values{"MessageStatus": {"undelivered"}}, Anonymous: true,
		})
	})
}

// lastSegment is the last segment of an address.
func lastSegment(address string) string { return address[strings.LastIndex(address, "/")+1:] }

func TestPhonesAndFactorsGoWithTheirAccount(t *testing.T) {
	fixture := client.NewFixture(t)
	accounts := fixture.Application.Link(t, "accounts")
	gone, kept := client.Register(t, accounts), client.Register(t, accounts)
	var addresses []string
	for _, account := range []e2e.Object{gone, kept} {
		factor := client.Create(t, account.Link(t, "factors")+"?challenge=true", e2e.Object{"type": "SMS", "phone": e2e.Object{"number": "+12675555555"}})
		addresses = append(addresses, factor.Link(t, "phone"), factor.Href(), factor.Link(t, "mostRecentChallenge"))
	}
	client.Delete(t, gone.Href())
	client.NotFound(t, gone.Href()+"/factors")
	for _, address := range addresses[:3] {
		awaitNotFound(t, address)
	}
	for _, address := range addresses[3:] {
		client.Get(t, address)
	}
	client.Delete(t, fixture.Directory.Href())
	for _, address := range addresses[3:] {
		awaitNotFound(t, address)
	}
}
