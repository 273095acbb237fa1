package rest_test

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/services/mfa/mfatest"
)

const authenticator = `{"type":"google-authenticator"}`

// random is what differs from one authenticator to the next.
var random = regexp.MustCompile(`(secret=|"secret":"|"base64QRImage":")[A-Za-z0-9+/]+=*`)

// masked hides the secrets of authenticators, so that an answer can be golden.
func masked(a resttest.Answer) resttest.Answer {
	a.Body = random.ReplaceAll(a.Body, []byte(`$1<random>`))
	return a
}

// scan reads the image of an authenticator as a telephone does.
func scan(t testing.TB, a resttest.Answer) string {
	t.Helper()
	picture, err := base64.StdEncoding.DecodeString(a.Text("base64QRImage"))
	if err != nil {
		t.Fatal(err)
	}
	return mfatest.ReadQRCode(t, picture)
}

func TestSMSFactor(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	made := d.Post(factors, `{"type":"sms","phone":{"number":"888 391 5282"}}`).Want(201).Golden("sms_created")
	d.Get(made.Href("phone")).Want(200).Golden("sms_phone")
	d.Move(time.Minute)
	d.Get(made.Href()).Want(200).Golden("sms")
	d.Post(made.Href(), `{"status":"disabled","type":"ignored","verificationStatus":"VERIFIED","phone":{"href":"ignored"}}`).Want(200).Golden("sms_updated")
	d.Post(factors+"?challenge=true",
		`{"type":"SMS","phone":{"number":"+12675555555","name":"Mine"},"status":"enabled"}`).Want(201).Golden(
		"sms_created_challenged")
	d.Move(time.Minute)
	d.Post(factors, `{"type":"SMS","phone":{"number":"+447400123456"},"challenge":{"message":"Use ${code} at Shop"}}`).Want(201)
	d.Get(factors + "?orderBy=createdAt").Want(200).Golden("factor_list")
	d.Delete(made.Href()).Want(204)
	d.Delete(made.Href()).Want(204)
	d.Get(made.Href()).WantError(404, 404)
	d.Get(made.Href("phone")).Want(200)
	if sent := d.Sent(); len(sent) != 2 || sent[0].Number != "+12675555555" || sent[1].Message != "Use ${code} at Shop" {
		t.Errorf("sent are %v", sent)
	}
}

func TestAPhoneAndItsFactor(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	phone := d.Post(mfatest.Of(d.Jo)+"/phones", `{"number":"+18883915282"}`).Want(201).Href()
	sms := func(phone string) string { return `{"type":"SMS","phone":` + phone + `}` }
	t.Run("a number that the account has is its phone", func(t *testing.T) {
		factor := d.Post(factors, sms(`{"number":"(888) 391-5282"}`)).Want(201)
		if factor.Href("phone") != phone {
			t.Errorf("the factor has the phone %s", factor.Href("phone"))
		}
		for _, again := range []string{`{"number":"+18883915282"}`, fmt.Sprintf(`{"href":%q}`, phone)} {
			d.Post(factors, sms(again)).WantError(400, 13105).Golden("factor_of_phone_exists")
		}
		d.Delete(factor.Href()).Want(204)
	})
	t.Run("a phone is named by its address", func(t *testing.T) {
		whole := fmt.Sprintf(`{"href":%q,"number":"888-391-5282","name":null,"status":"ENABLED","createdAt":"2026-11-20T20:25:00.000Z","account":{"href":"x"}}`, phone)
		factor := d.Post(factors, sms(whole)).Want(201)
		if factor.Href("phone") != phone {
			t.Errorf("the factor has the phone %s", factor.Href("phone"))
		}
		d.Delete(factor.Href()).Want(204)
		d.Post(factors, sms(fmt.Sprintf(`{"href":%q,"number":"+12675555555"}`, phone))).WantError(400, 13111).Golden(
			"factor_phone_contradicts")
		d.Post(factors, sms(fmt.Sprintf(`{"href":%q,"number":"nine"}`, phone))).WantError(400, 13101)
		d.Post(factors, sms(fmt.Sprintf(`{"href":%q}`, mfatest.Base.To("phones", id.New(d.Now()))))).WantError(404, 404)
		d.Post(factors, sms(fmt.Sprintf(`{"href":%q}`, mfatest.Base.Path("phones", "nothing")))).WantError(404, 404)
		d.Post(factors, sms(fmt.Sprintf(`{"href":%q}`, mfatest.Of(d.Jo)))).WantError(400, 2014)
		al := d.Account(d.Tenant, "al")
		d.Post(mfatest.Of(al)+"/factors", sms(fmt.Sprintf(`{"href":%q}`, phone))).WantError(400, 2014)
	})
	t.Run("a phone goes with its factor", func(t *testing.T) {
		factor := d.Post(factors+"?challenge=true", sms(fmt.Sprintf(`{"href":%q}`, phone))).Want(201)
		d.Delete(phone).Want(204)
		d.Get(factor.Href()).WantError(404, 404)
		d.Get(factor.Href("mostRecentChallenge")).WantError(404, 404)
	})
	t.Run("of fifty factors at once one is made, and one phone", func(t *testing.T) {
		count := parallel(50, func(int) resttest.Answer { return d.Post(factors, sms(`{"number":"+12675555555"}`)) })
		if count[201] != 1 || count[400] != 49 {
			t.Errorf("answers by status: %v; want one 201 and the rest 400", count)
		}
		if got := d.Get(mfatest.Of(d.Jo) + "/phones").Int("size"); got != 1 {
			t.Errorf("the account has %d phones, want 1", got)
		}
	})
}

func TestAuthenticatorFactor(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	masked(d.Post(factors, authenticator).Want(201)).Golden("authenticator_created")
	d.Move(time.Minute)
	made := d.Post(factors+"?challenge=true",
		`{"type":"GOOGLE-Authenticator","accountName":"jo@example.test","issuer":"Jo & Söhne/Shop","status":"ENABLED"}`).Want(
		201)
	masked(made).Golden("authenticator_created_whole")
	d.Move(time.Minute)
	masked(d.Get(made.Href()).Want(200)).Golden("authenticator")
	masked(d.Get(factors + "?type=google-authenticator").Want(200)).Golden("authenticator_list")

	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(made.Text("secret"))
	if err != nil || len(secret) != 20 {
		t.Errorf("the secret has %d bytes, %v; want 20", len(secret), err)
	}
	want := "otpauth://totp/Jo%20%26%20S%C3%B6hne%2FShop:jo%40example.test?secret=" + made.Text("secret") +
		"&issuer=Jo%20%26%20S%C3%B6hne%2FShop"
	if made.Text("keyUri") != want || scan(t, made) != want {
		t.Errorf("keyUri is %q, the image shows %q; want %q", made.Text("keyUri"), scan(t, made), want)
	}
	key, err := otp.NewKeyFromURL(made.Text("keyUri"))
	if err != nil || key.Issuer() != "Jo & Söhne/Shop" || key.AccountName() != "jo@example.test" ||
		key.Secret() != made.Text("secret") {
		t.Errorf("an authenticator reads issuer %q, name %q, %v", key.Issuer(), key.AccountName(), err)
	}

	renamed := d.Post(made.Href(), `{"issuer":"Shop","accountName":"jo","secret":"ignored","keyUri":"ignored"}`).Want(200)
	masked(renamed).Golden("authenticator_updated")
	if renamed.Text("secret") != made.Text("secret") {
		t.Error("another name gives another secret")
	}
	if want := "otpauth://totp/Shop:jo?secret=" + made.Text("secret") + "&issuer=Shop"; scan(t, renamed) != want {
		t.Errorf("the image shows %q, want %q", scan(t, renamed), want)
	}
	if again := d.Get(made.Href()); again.Text("base64QRImage") != renamed.Text("base64QRImage") {
		t.Error("the image is another one each time")
	}
	if plain := d.Post(factors, authenticator).Want(201); plain.Text("keyUri") != "otpauth://totp/jo?secret="+
		plain.Text("secret") {
		t.Errorf("without issuer keyUri is %q", plain.Text("keyUri"))
	}
	d.Delete(made.Href()).Want(204)
	d.Get(made.Href("mostRecentChallenge")).WantError(404, 404)
}

func TestFactorRefusals(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	sms := func(more string) string { return `{"type":"SMS","phone":{"number":"+18883915282"}` + more + `}` }
	app := func(more string) string { return `{"type":"google-authenticator"` + more + `}` }
	long := strings.Repeat("j", 255)
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{`{}`, 400, 2000},
		{`{"type":null}`, 400, 2000},
		{`{"type":"pigeon"}`, 400, 2003},
		{`{"type":"SMS"}`, 400, 2000},
		{`{"type":"SMS","phone":null}`, 400, 2000},
		{`{"type":"SMS","phone":{}}`, 400, 2000},
		{`{"type":"SMS","phone":{"number":null}}`, 400, 2000},
		{`{"type":"SMS","phone":"+18883915282"}`, 400, 2004},
		{`{"type":"SMS","phone":["+18883915282"]}`, 400, 2004},
		{`{"type":"SMS","phone":{"number":"nine"}}`, 400, 13101},
		{`{"type":"SMS","phone":{"number":"+18883915282","colour":"red"}}`, 400, 2015},
		{sms(`,"accountName":"jo"`), 400, 2017},
		{sms(`,"issuer":"Shop"`), 400, 2017},
		{sms(`,"status":"LOST"`), 400, 2003},
		{sms(`,"status":""`), 400, 2000},
		{sms(`,"challenge":{"message":"no placeholder"}`), 400, 13103},
		{sms(`,"challenge":{"message":""}`), 400, 2007},
		{sms(`,"challenge":{"message":"${code}` + strings.Repeat("x", 154) + `"}`), 400, 2008},
		{sms(`,"challenge":true`), 400, 2004},
		{sms(`,"challenge":"${code}"`), 400, 2004},
		{sms(`,"challenge":{"code":"123456"}`), 400, 2017},
		{sms(`,"challenge":{"colour":"red"}`), 400, 2015},
		{sms(`,"challenge":{},"status":"DISABLED"`), 400, 13109},
		{`{"type":"SMS","phone":{"number":"+18883915282","status":"DISABLED"},"challenge":{}}`, 400, 13110},
		{app(`,"accountName":null`), 400, 2000},
		{app(`,"accountName":" "`), 400, 2000},
		{app(`,"accountName":"a:b"`), 400, 2002},
		{app(`,"accountName":"` + long + `j"`), 400, 2008},
		{app(`,"issuer":""`), 400, 2000},
		{app(`,"issuer":"a:b"`), 400, 2002},
		{app(`,"issuer":"` + long + `j"`), 400, 2008},
		{app(`,"issuer":"` + strings.Repeat("ä", 255) + `","accountName":"` + strings.Repeat("ä", 255) + `"`), 400, 2008},
		{app(`,"phone":{"number":"+18883915282"}`), 400, 2017},
		{app(`,"challenge":{"message":"${code}"}`), 400, 2017},
		{app(`,"colour":"red"`), 400, 2015},
		{`[]`, 400, 2006},
	} {
		d.Post(factors, c.body).WantError(c.status, c.code)
	}
	d.Post(factors+"?challenge=perhaps", sms("")).WantError(400, 2103)
	if d.Rows("phones")+d.Rows("factors")+d.Rows("challenges")+len(d.Sent()) != 0 {
		t.Error("something was made of what was refused")
	}
	d.Post(factors+"?challenge=false", sms(`,"challenge":{"message":"${code}`+strings.Repeat("ä", 153)+`"}`)).Want(201)
	if got := d.Post(factors, app(`,"issuer":null`)).Want(201); strings.Contains(got.Text("keyUri"), "issuer") {
		t.Errorf("an issuer that is null returns %s", got.Text("keyUri"))
	}
	made := d.Post(factors, app(`,"issuer":"`+long+`","accountName":"`+long+`"`)).Want(201)
	if uri := made.Text("keyUri"); d.Post(made.Href(), `{"issuer":null}`).Want(200).Text("keyUri") != uri {
		t.Error("an issuer that is null changes the keyUri")
	}
	scan(t, made)
	for body, code := range map[string]int{
		`{"accountName":null}`: 2000, `{"issuer":" "}`: 2000, `{"issuer":"a:b"}`: 2002, `{"status":"x"}`: 2003,
		`{"challenge":{}}`:                   2015,
		`{"accountName":"a:b","issuer":" "}`: 2000, `{"status":"x","issuer":null,"accountName":" "}`: 2000,
		`{"accountName":"` + strings.Repeat("x", 256) + `","status":"x"}`:                                2003,
		`{"issuer":"` + strings.Repeat("ä", 255) + `","accountName":"` + strings.Repeat("ä", 255) + `"}`: 2008,
	} {
		d.Post(made.Href(), body).WantError(400, code)
	}
	odd := d.Account(d.Tenant, "odd") // directory refuses such a name today
	if err := pg.MustChange(t.Context(), d.Directory.DB, `UPDATE accounts SET username = 'a:b'
		WHERE tenant_id = $1 AND id = $2`, d.Tenant, odd.ID); err != nil {
		t.Fatal(err)
	}
	d.Post(mfatest.Of(odd)+"/factors", authenticator).WantError(400, 2002)
	d.Post(mfatest.Base.To("accounts", id.New(d.Now()), "factors"), authenticator).WantError(404, 404)
	d.Get("/v1/factors/nothing").WantError(404, 404)
}

// The owner gets a mail of each factor that is added or removed. It counts from when it is verified.
func TestTheOwnerHearsOfItsFactors(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	want := []events.FactorChanged{}
	expect := func(what string, more ...events.FactorChanged) {
		t.Helper()
		if want = append(want, more...); !slices.Equal(d.Changes(), want) {
			t.Errorf("%s the events are %+v, want %+v", what, d.Changes(), want)
		}
	}
	change := func(kind string, removed bool) events.FactorChanged {
		return events.FactorChanged{Tenant: d.Tenant, Account: d.Jo.ID, Type: kind, Removed: removed}
	}
	sms := d.Post(factors+"?challenge=true", `{"type":"sms","phone":{"number":"+18883915282"}}`).Want(201)
	expect("before the first code")
	answer := `{"code":"` + d.Code(sms.Href("mostRecentChallenge")) + `"}`
	d.Post(sms.Href("mostRecentChallenge"), `{"code":"`+mfatest.Wrong(d.Code(sms.Href("mostRecentChallenge")))+`"}`).Want(
		200)
	expect("after a wrong code")
	d.Post(sms.Href("mostRecentChallenge"), answer).Want(200)
	expect("after the right code", change("SMS", false))
	again := d.Post(sms.Href()+"/challenges", "").Want(201)
	d.Post(again.Href(), `{"code":"`+d.Code(again.Href())+`"}`).Want(200)
	expect("after another code")
	d.Delete(d.Post(factors, authenticator).Want(201).Href()).Want(204)
	expect("of a factor that was never verified")
	app := d.Post(factors, `{"type":"google-authenticator","secret":"JBSWY3DPEHPK3PXP","verificationStatus":"VERIFIED"}`).Want(201)
	expect("of a factor that was verified elsewhere", change("google-authenticator", false))
	d.Delete(app.Href()).Want(204)
	d.Delete(app.Href()).Want(204)
	expect("after a deletion", change("google-authenticator", true))
	d.Delete(sms.Href("phone")).Want(204)
	expect("after the deletion of the phone", change("SMS", true))
}

// A user who has an authenticator already keeps it: its secret is taken as it is.
func TestASecretIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	const secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	made := d.Post(factors, `{"type":"google-authenticator","secret":"jbsw y3dp ehpk 3pxp JBSWY3DPEHPK3PXP ","verificationStatus":"verified"}`).Want(201)
	if made.Text("secret") != secret || made.Text("verificationStatus") != "VERIFIED" ||
		!strings.Contains(scan(t, made), "secret="+secret) {
		t.Errorf("the factor is %s", made.Body)
	}
	code, err := totp.GenerateCode(secret, d.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Post(made.Href()+"/challenges", `{"code":" `+code[:3]+"\u00a0"+code[3:]+`"}`).Want(201); got.Text(
		"status") != "SUCCESS" {
		t.Errorf("a code of the secret is %s", got.Body)
	}
	if got := d.Post(made.Href(), `{"secret":"GEZDGNBVGY3TQOJQ","verificationStatus":"UNVERIFIED"}`).Want(200); got.Text(
		"secret") != secret ||
		got.Text("verificationStatus") != "VERIFIED" {
		t.Errorf("an update of what is read-only returns %s", got.Body)
	}
	for _, body := range []string{`"secret":"GEZDGNBVGY3TQOJQ"`, `"secret":"GEZDGNBVGY3TQOJQ","verificationStatus":null`,
		`"secret":"` + strings.Repeat("A", 103) + `"`, `"secret":"GEZDGNBVGY3TQOJQGE======"`,
		`"secret":null,"verificationStatus":"VERIFIED"`} {
		if got := d.Post(factors, `{"type":"google-authenticator",`+body+`}`).Want(201); got.Text(
			"verificationStatus") != "UNVERIFIED" {
			t.Errorf("with %s the factor is %s", body, got.Body)
		}
	}
	for _, secret := range []string{"", " ", "A", "ABCDEFGH", strings.Repeat("A", 104), "JBSWY3DPEHPK3PX1",
		"JBSWY3DP=EHPK3PXP", "ÄBSWY3DPEHPK3PXP"} {
		d.Post(factors, `{"type":"google-authenticator","secret":"`+secret+`"}`).WantError(400, 2006)
	}
	d.Post(factors, `{"type":"google-authenticator","secret":"GEZDGNBVGY3TQOJQ","verificationStatus":"perhaps"}`).WantError(400, 2003)
	d.Post(factors, `{"type":"sms","phone":{"number":"+18883915282"},"secret":"GEZDGNBVGY3TQOJQ"}`).WantError(400, 2017)
	if got := d.Holding("factors", secret); got != 0 {
		t.Errorf("%d rows hold the secret in clear", got)
	}
}

func TestFactorsAreSearchedAndSorted(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factors := mfatest.Of(d.Jo) + "/factors"
	for _, body := range []string{
		`{"type":"google-authenticator","accountName":"one","issuer":"Shop"}`,
		`{"type":"google-authenticator","accountName":"Two","status":"DISABLED"}`,
		`{"type":"SMS","phone":{"number":"+18883915282"}}`,
	} {
		d.Post(factors, body).Want(201)
		d.Move(time.Minute)
	}
	for query, want := range map[string][]string{
		"type=sms":                      {""},
		"type=Google-Authenticator":     {"one", "Two"},
		"accountName=two":               {"Two"},
		"issuer=sh*":                    {"one"},
		"q=sho":                         {"one"},
		"status=DISABLED":               {"Two"},
		"verificationStatus=UNVERIFIED": {"one", "Two", ""},
		"orderBy=accountName+desc":      {"Two", "one", ""},
		"createdAt=2026-11-20T20:27":    {""},
	} {
		if got := values(d.Get(factors+"?"+query).Want(200), "accountName"); !slices.Equal(got, want) {
			t.Errorf("?%s returns %v, want %v", query, got, want)
		}
	}
	for query, code := range map[string]int{"type=pigeon": 2105, "secret=x": 2105, "orderBy=secret": 2106,
		"phone=x": 2105} {
		d.Get(factors+"?"+query).WantError(400, code)
	}
}

// A caller that reads the tables can neither make codes nor tell which were sent.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	app := d.Post(mfatest.Of(d.Jo)+"/factors", authenticator).Want(201)
	sms := d.Post(mfatest.Of(d.Jo)+"/factors?challenge=true", `{"type":"SMS","phone":{"number":"+18883915282"}}`).Want(201)
	code := d.Code(sms.Href("mostRecentChallenge"))
	for _, secret := range []string{app.Text("secret"), `"` + code + `"`} {
		for _, table := range []string{"factors", "challenges", "outbox"} {
			if got := d.Holding(table, secret); got != 0 {
				t.Errorf("%d rows of %s hold a secret", got, table)
			}
		}
	}
}

// Clients post the whole of what they have read (docs/interface/conventions.md#resources).
func TestWhatWasReadCanBeSentBack(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	sms := d.Post(mfatest.Of(d.Jo)+"/factors?challenge=true", `{"type":"SMS","phone":{"number":"+18883915282"}}`).Want(201)
	app := d.Post(mfatest.Of(d.Jo)+"/factors?challenge=true", `{"type":"google-authenticator","issuer":"Shop"}`).Want(201)
	for _, address := range []string{sms.Href(), sms.Href("phone"), app.Href()} {
		read := d.Get(address).Want(200)
		if sent := d.Post(address, string(read.Body)).Want(200); !bytes.Equal(sent.Body, read.Body) {
			t.Errorf("%s became %s", read.Body, sent.Body)
		}
	}
	plain := d.Get(d.Post(mfatest.Of(d.Jo)+"/factors", authenticator).Want(201).Href())
	d.Post(plain.Href(), string(plain.Body)).Want(200)
}
