package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/pg"
)

func TestImportOfHashedPasswords(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, "acme")
	staff := b.directory("Staff")
	body := func(name, hash string) string {
		return fmt.Sprintf(`{"email":"%s@example.test","password":"%s"}`, name, hash)
	}
	for i, hash := range []string{
		"$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
		"$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
		"$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
		"$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
		"$service2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw==",
		"$acme2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw==",
	} {
		b.Post(staff+"/accounts?passwordFormat=mcf", body(fmt.Sprint("a", i), hash)).Want(201)
	}
	for _, c := range []struct {
		query, hash string
		code        int
	}{
		{"?passwordFormat=mcf", "Changeme1!", 2006},
		{"?passwordFormat=mcf", "$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", 2006},
		{"?passwordFormat=mcf", "$service2$MD5$1000000000$$6/yL/4bXIDITOJh+cuAmQw==", 2006},
		{"?passwordFormat=mcf", "$service2$MD5$1$" + strings.Repeat("AAAA", 1000) + "$6/yL/4bXIDITOJh+cuAmQw==", 2006},
		{"?passwordFormat=mcf", " ", 2000},
		{"?passwordFormat=MCF", "Changeme1!", 2006},
		{"?passwordFormat=plain", "Changeme1!", 2105},
		{"?passwordFormat=", "Changeme1!", 2105},
	} {
		refusal := b.Post(staff+"/accounts"+c.query, body("refused", c.hash)).WantError(400, c.code)
		// clients compare it
		if c.code == 2006 && !strings.Contains(refusal.Text("developerMessage"), "is in an invalid format") {
			t.Errorf("the refusal says %s", refusal.Text("developerMessage"))
		}
	}
	b.Post(staff+"/accounts?passwordFormat=mcf", `{"email":"refused@example.test"}`).WantError(400, 2000)
	account, _ := b.Get(staff + "/accounts").Want(200).Items()[0]["href"].(string)
	b.Post(account+"?passwordFormat=mcf", body("a0", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")).
		WantError(400, 2105)
	if n := b.Get(staff + "/accounts").Want(200).Int("size"); n != 6 {
		t.Errorf("the directory has %d accounts", n)
	}
}

func TestAPasswordThatWasUsedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	account := b.Post(staff+"/accounts", jo).Want(201).Href()
	if _, err := pg.Exec(t.Context(), b.db, `UPDATE password_policies SET prevent_reuse = 2`); err != nil {
		t.Fatal(err)
	}
	b.Post(account, `{"password":"Changeme1!"}`).WantError(400, 6401).Golden("password_reused")
	b.Post(account, `{"password":"Changeme2!"}`).Want(200)
	b.Post(account, `{"password":"Changeme1!"}`).WantError(400, 6401)
	b.Post(account, `{"password":"Changeme3!"}`).Want(200)
	b.Post(account, `{"password":"Changeme1!"}`).Want(200)
}

func TestAWeakPasswordIsRefusedWithWhatItLacks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	account := b.Post(staff+"/accounts", jo).Want(201).Href()
	for _, c := range []struct {
		password string
		code     int
	}{
		{`"Chang1!"`, 2007}, {`"Aa1` + strings.Repeat("x", 98) + `"`, 2008}, {`"` + strings.Repeat("a", 1<<19) + `"`, 2008},
		{`null`, 2000}, {`""`, 2000}, {`"         "`, 2000}, {`"Changeme1!\u0000"`, 2006}, {`12345678`, 2004},
	} {
		b.Post(account, `{"password":`+c.password+`}`).WantError(400, c.code)
	}
	b.Post(account, `{"password":"CHANGEME1!"}`).WantError(400, 400).Golden("password_weak")
}
