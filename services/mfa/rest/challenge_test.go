package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/services/mfa/mfatest"
)

// code is the body that answers a challenge.
func code(digits string) string { return fmt.Sprintf(`{"code":%q}`, digits) }

// smsFactor makes a factor of the account and returns its address.
func smsFactor(d *mfatest.Deployment) string {
	d.T.Helper()
	return d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"SMS","phone":{"number":"+18883915282"}}`).Want(201).Href()
}

// app is an authenticator as its owner has it.
type app struct {
	*mfatest.Deployment
	href, secret string
}

func newApp(d *mfatest.Deployment) app {
	d.T.Helper()
	made := d.Post(mfatest.Of(d.Jo)+"/factors", authenticator).Want(201)
	return app{d, made.Href(), made.Text("secret")}
}

// code returns the code that the authenticator shows.
func (a app) code() string {
	a.T.Helper()
	shown, err := totp.GenerateCode(a.secret, a.Now())
	if err != nil {
		a.T.Fatal(err)
	}
	return shown
}

func TestSMSChallenge(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := smsFactor(d)
	made := d.Post(factor+"/challenges", "").Want(201).Golden("sms_challenge_created")
	d.Move(time.Minute)
	d.Get(made.Href()).Want(200).Golden("sms_challenge")
	d.Post(made.Href(), code(mfatest.Wrong(d.Code(made.Href())))).Want(200).Golden("sms_challenge_failed")
	d.Post(made.Href(), code(d.Code(made.Href()))).Want(200).Golden("sms_challenge_succeeded")
	verified := d.Get(factor).Want(200).Golden("sms_verified")
	d.Get(verified.Href("phone")).Want(200).Golden("sms_phone_verified")
	d.Post(made.Href(), code(d.Code(made.Href()))).WantError(400, 13112).Golden("challenge_finished")

	custom := d.Post(factor+"/challenges", `{"message":"Shop: ${code}"}`).Want(201).Golden("sms_challenge_custom")
	d.Post(custom.Href(), `{"code":"`+d.Code(made.Href())+`x"}`).WantError(400, 2002)
	d.Get(factor + "/challenges").Want(200).Golden("sms_challenge_list")
	d.Send(http.MethodDelete, custom.Href(), "", "").WantError(405, 1100)
	if got := d.Get(factor).Href("mostRecentChallenge"); got != custom.Href() {
		t.Errorf("the most recent challenge is %s, want %s", got, custom.Href())
	}
	sent := d.Sent()
	if len(sent) != 2 || sent[0].Message != "Your verification code is ${code}" || sent[1].Message != "Shop: ${code}" ||
		sent[1].Number != "+18883915282" {
		t.Errorf("sent are %v", sent)
	}
	if !sent[1].ExpiresAt.Equal(d.Now().Add(300 * time.Second)) {
		t.Errorf("the code is good until %v", sent[1].ExpiresAt)
	}
}

func TestOlderChallengesStayOpen(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := smsFactor(d)
	older := d.Post(factor+"/challenges", `{}`).Want(201).Href()
	newer := d.Post(factor+"/challenges", `{}`).Want(201).Href()
	if got := d.Post(older, code(d.Code(older))).Want(200).Text("status"); got != "SUCCESS" {
		t.Errorf("the older challenge is %s", got)
	}
	if got := d.Post(newer, code(d.Code(newer))).Want(200).Text("status"); got != "SUCCESS" {
		t.Errorf("the newer challenge is %s", got)
	}
}

func TestChallengeRefusals(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := smsFactor(d)
	for body, want := range map[string]int{
		`{"message":"no placeholder"}`: 13103, `{"message":"$code"}`: 13103, `{"message":""}`: 2007, `{"message":1}`: 2004,
		`{"message":"${code}` + strings.Repeat("x", 154) + `"}`: 2008, `{"code":"123456"}`: 2017, `{"code":"one"}`: 2002,
		`{"colour":"red"}`: 2015, `[]`: 2006,
	} {
		d.Post(factor+"/challenges", body).WantError(400, want)
	}
	d.Post(factor+"/challenges", `{"message":"no placeholder"}`).WantError(400, 13103).Golden(
		"message_without_placeholder")
	if d.Rows("challenges") != 0 || len(d.Sent()) != 0 {
		t.Error("a challenge was made of what was refused")
	}
	challenge := d.Post(factor+"/challenges", `{"message":null}`).Want(201).Href()
	for body, want := range map[string]int{
		`{}`: 2000, `{"code":null}`: 2000, `{"code":" "}`: 2000, `{"code":123456}`: 2004, `{"code":"12-456"}`: 2002,
		`{"code":"-12345"}`:                           2002,
		`{"code":"` + strings.Repeat("1", 256) + `"}`: 2008, `{"code":"1","colour":"red"}`: 2015, ``: 2006,
	} {
		d.Post(challenge, body).WantError(400, want)
	}
	if got := d.Get(challenge).Text("status"); got != "CREATED" {
		t.Errorf("after malformed codes the challenge is %s", got)
	}
	if got := d.Post(challenge, code(d.Code(challenge)+"0")).Want(200).Text("status"); got != "FAILED" {
		t.Errorf("after a code with a digit more the challenge is %s", got)
	}
	d.Post(newApp(d).href+"/challenges", `{"message":"${code}"}`).WantError(400, 2017)
	d.Get("/v1/challenges/nothing").WantError(404, 404)
	d.Post("/v1/challenges/nothing", code("123456")).WantError(404, 404)
}

func TestAChallengeExpires(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := smsFactor(d)
	failed := d.Post(factor+"/challenges", "").Want(201).Href()
	d.Post(failed, code(mfatest.Wrong(d.Code(failed)))).Want(200)
	last := d.Post(factor+"/challenges", "").Want(201).Href()
	d.Move(300*time.Second - time.Millisecond)
	if got := d.Post(last, code(d.Code(last))).Want(200).Text("status"); got != "SUCCESS" {
		t.Errorf("a millisecond before its end the challenge is %s", got)
	}
	late := d.Post(factor+"/challenges", "").Want(201).Href()
	d.Move(300 * time.Second)
	d.Get(late).Want(200).Golden("challenge_late")
	for query, want := range map[string][]string{
		"status=EXPIRED": {failed, late}, "status=CREATED": {}, "status=success": {last},
		"orderBy=status": {failed, late, last},
	} {
		if got := values(d.Get(factor+"/challenges?"+query).Want(200), "href"); !slices.Equal(got, want) {
			t.Errorf("?%s returns %v, want %v", query, got, want)
		}
	}
	d.Post(late, code(d.Code(late))).WantError(400, 13108).Golden("challenge_expired")
	d.Post(late, code(d.Code(late))).WantError(400, 13112)
	d.Get(late).Want(200).Golden("challenge_ended")
	d.Get(last).Want(200)

	waiting := newApp(d)
	challenge := d.Post(waiting.href+"/challenges", "").Want(201).Href()
	d.Move(300 * time.Second)
	d.Post(challenge, code(waiting.code())).WantError(400, 13108)
	for query, want := range map[string]int{"status=DENIED": 2105, "message=x": 2105, "orderBy=message": 2106} {
		d.Get(factor+"/challenges?"+query).WantError(400, want)
	}
}

func TestAuthenticatorChallenge(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	a := newApp(d)
	waiting := d.Post(a.href+"/challenges", "").Want(201).Golden("authenticator_challenge_created")
	d.Post(waiting.Href(), code(a.code())).Want(200).Golden("authenticator_challenge_succeeded")
	masked(d.Get(a.href).Want(200)).Golden("authenticator_verified")
	d.Post(a.href+"/challenges", `{"code":" "}`).WantError(400, 2000)
	if got := d.Post(a.href+"/challenges", `{"code":null}`).Want(201).Text("status"); got != "CREATED" {
		t.Errorf("a challenge whose code is null is %s", got)
	}
	d.Move(30 * time.Second)
	d.Post(a.href+"/challenges", code(a.code())).Want(201).Golden("authenticator_challenge_answered")
	d.Move(30 * time.Second)
	d.Post(a.href+"/challenges", code(mfatest.Wrong(a.code()))).Want(201).Golden("authenticator_challenge_failed")
	if len(d.Sent()) != 0 {
		t.Error("a message was sent for an authenticator")
	}
}

func TestAClockMayBeSkewedByOneStep(t *testing.T) {
	for drift, want := range map[time.Duration]string{
		0: "SUCCESS", -30 * time.Second: "SUCCESS", 30 * time.Second: "SUCCESS", -60 * time.Second: "FAILED",
		60 * time.Second: "FAILED",
	} {
		d := mfatest.Open(t)
		a := newApp(d)
		shown, err := totp.GenerateCode(a.secret, d.Now().Add(drift))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Post(a.href+"/challenges", code(shown)).Want(201).Text("status"); got != want {
			t.Errorf("a clock that is off by %v returns %s, want %s", drift, got, want)
		}
	}
}

func TestACodeOfAnAuthenticatorIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	a := newApp(d)
	before := a.code()
	d.Move(30 * time.Second)
	challenge := d.Post(a.href+"/challenges", "").Want(201).Href()
	if got := d.Post(challenge, code(a.code())).Want(200).Text("status"); got != "SUCCESS" {
		t.Fatalf("the first time it is %s", got)
	}
	for name, spent := range map[string]string{"the same code": a.code(), "the code before it": before} {
		if got := d.Post(a.href+"/challenges", code(spent)).Want(201).Text("status"); got != "FAILED" {
			t.Errorf("%s is %s", name, got)
		}
	}
	b := newApp(d)
	var statuses [20]string
	parallel(len(statuses), func(i int) resttest.Answer {
		answer := d.Post(b.href+"/challenges", code(b.code()))
		if answer.Status == 201 {
			statuses[i] = answer.Text("status")
		}
		return answer
	})
	accepted := 0
	for _, status := range statuses {
		if status == "SUCCESS" {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("of parallel tries with one code %d were accepted: %v", accepted, statuses)
	}
}

func TestDisabledFactorsAndPhones(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := smsFactor(d)
	challenge := d.Post(factor+"/challenges", "").Want(201).Href()
	phone := d.Get(factor).Href("phone")
	d.Post(factor, `{"status":"DISABLED"}`).Want(200)
	d.Post(factor+"/challenges", "").WantError(400, 13109).Golden("factor_disabled")
	d.Post(challenge, code(d.Code(challenge))).WantError(400, 13109)
	d.Post(factor, `{"status":"ENABLED"}`).Want(200)
	d.Post(phone, `{"status":"DISABLED"}`).Want(200)
	d.Post(factor+"/challenges", "").WantError(400, 13110).Golden("phone_disabled")
	d.Post(challenge, code(d.Code(challenge))).WantError(400, 13110)
	d.Post(phone, `{"status":"ENABLED"}`).Want(200)
	if got := d.Post(challenge, code(d.Code(challenge))).Want(200).Text("status"); got != "SUCCESS" {
		t.Errorf("when both are enabled again the challenge is %s", got)
	}
	a := newApp(d)
	d.Post(a.href, `{"status":"DISABLED"}`).Want(200)
	d.Post(a.href+"/challenges", code(a.code())).WantError(400, 13109)
}

func TestAChallengeHasFiveAttempts(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	challenge := d.Post(smsFactor(d)+"/challenges", "").Want(201).Href()
	wrong := code(mfatest.Wrong(d.Code(challenge)))
	for range 5 {
		if got := d.Post(challenge, wrong).Want(200).Text("status"); got != "FAILED" {
			t.Fatalf("after a wrong code the challenge is %s", got)
		}
	}
	d.Post(challenge, wrong).WantError(400, 13113).Golden("challenge_failures")
	d.Post(challenge, code(d.Code(challenge))).WantError(400, 13113)
	if got := d.Get(challenge).Text("status"); got != "FAILED" {
		t.Errorf("after too many wrong codes the challenge is %s", got)
	}
}

func TestFiftyParallelAttemptsAreFive(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	challenge := d.Post(smsFactor(d)+"/challenges", "").Want(201).Href()
	wrong := code(mfatest.Wrong(d.Code(challenge)))
	count := parallel(50, func(int) resttest.Answer { return d.Post(challenge, wrong) })
	if count[200] != 5 || count[400] != 45 {
		t.Fatalf("answers by status: %v; want 5 tries and the rest refused", count)
	}
}

// A new challenge adds no new tries: ten wrong codes an hour is what a factor
// has, thirty a day what an account has.
func TestAttemptsAreCountedAcrossChallenges(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	sms, a := smsFactor(d), newApp(d)
	count := parallel(50, func(int) resttest.Answer { return d.Post(a.href+"/challenges", code(mfatest.Wrong(a.code()))) })
	if count[201] != 10 || count[400] != 40 {
		t.Fatalf("answers by status: %v; want 10 tries and the rest refused", count)
	}
	d.Post(a.href+"/challenges", code(a.code())).WantError(400, 13113).Golden("factor_failures")
	d.Post(a.href+"/challenges", "").WantError(400, 13113)
	t.Run("the other factors of the account go on", func(t *testing.T) {
		challenge := d.Post(sms+"/challenges", "").Want(201).Href()
		if got := d.Post(challenge, code(d.Code(challenge))).Want(200).Text("status"); got != "SUCCESS" {
			t.Errorf("the challenge is %s", got)
		}
	})
	t.Run("the factor goes on after an hour", func(t *testing.T) {
		d.Move(time.Hour - time.Millisecond)
		d.Post(a.href+"/challenges", code(a.code())).WantError(400, 13113)
		d.Move(time.Millisecond)
		if got := d.Post(a.href+"/challenges", code(a.code())).Want(201).Text("status"); got != "SUCCESS" {
			t.Errorf("the challenge is %s", got)
		}
	})
	t.Run("new factors add no tries to those of the account", func(t *testing.T) {
		made, tries := newApp(d), 0
		for range 50 {
			answer := d.Post(made.href+"/challenges", code(mfatest.Wrong(made.code())))
			if answer.Status == 201 {
				tries++
				continue
			}
			answer.WantError(400, 13113)
			d.Delete(made.href).Want(204)
			made = newApp(d)
		}
		if tries != 20 {
			t.Errorf("after ten wrong codes the account had %d more tries, want 20", tries)
		}
		d.Post(made.href+"/challenges", code(made.code())).WantError(400, 13113)
		d.Post(sms+"/challenges", "").WantError(400, 13113)
		d.Move(23 * time.Hour)
		if got := d.Post(made.href+"/challenges", code(made.code())).Want(201).Text("status"); got != "SUCCESS" {
			t.Errorf("a day after the first wrong code the challenge is %s", got)
		}
	})
	t.Run("another account has its own", func(t *testing.T) {
		d.Post(mfatest.Of(d.Account(d.Tenant, "al"))+"/factors?challenge=true", authenticator).Want(201)
	})
}

func TestMessagesAreLimited(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := smsFactor(d)
	count := parallel(50, func(int) resttest.Answer { return d.Post(factor+"/challenges", "") })
	if count[201] != mfatest.Limits.NumberMessages || count[429] != 50-mfatest.Limits.NumberMessages {
		t.Fatalf("answers by status: %v", count)
	}
	refused := d.Post(factor+"/challenges", "").WantError(429, 429).Golden("messages_limited")
	if got := refused.Header.Get("Retry-After"); got != "3600" {
		t.Errorf("Retry-After is %q", got)
	}
	if d.Rows("challenges") != 10 || len(d.Sent()) != 10 {
		t.Errorf("there are %d challenges and %d messages", d.Rows("challenges"), len(d.Sent()))
	}
	t.Run("the number is limited, not the factor", func(t *testing.T) {
		d.Delete(factor).Want(204)
		d.Post(mfatest.Of(d.Jo)+"/factors?challenge=true", `{"type":"SMS","phone":{"number":"+18883915282"}}`).WantError(429,
			429)
		al := mfatest.Of(d.Account(d.Tenant, "al")) + "/factors?challenge=true"
		d.Post(al, `{"type":"SMS","phone":{"number":"+18883915282"}}`).WantError(429, 429)
	})
	send := func(number string) resttest.Answer {
		return d.Post(mfatest.Of(d.Account(d.Tenant, "al"))+"/factors?challenge=true",
			fmt.Sprintf(`{"type":"SMS","phone":{"number":%q}}`, number))
	}
	t.Run("the country is limited", func(t *testing.T) {
		for i := range 5 {
			send(fmt.Sprintf("+1267555555%d", i)).Want(201)
		}
		send("+12675555559").WantError(429, 429)
	})
	t.Run("the tenant is limited", func(t *testing.T) {
		for i := range 5 {
			send(fmt.Sprintf("+44740012345%d", i)).Want(201)
		}
		send("+447400123459").WantError(429, 429)
	})
	t.Run("after an hour it goes on", func(t *testing.T) {
		d.Move(time.Hour)
		send("+18883915282").Want(201)
	})
}

// A fault of ours is no wrong code: it ends the challenge and says so.
func TestASecretThatCannotBeUnsealedEndsTheChallenge(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	challenge := d.Post(smsFactor(d)+"/challenges", "").Want(201).Href()
	if _, err := pg.Exec(t.Context(), d.DB, `UPDATE challenges SET code_key_sealed = '\x00'`); err != nil {
		t.Fatal(err)
	}
	d.Post(challenge, code(d.Code(challenge))).WantError(500, 13107)
	if got := d.Get(challenge).Text("status"); got != "ERROR" {
		t.Errorf("the challenge is %s", got)
	}
	d.Post(challenge, code(d.Code(challenge))).WantError(400, 13112)
}
