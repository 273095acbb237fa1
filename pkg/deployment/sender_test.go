package deployment

import (
	"net/mail"
	"strings"
	"testing"
)

func TestTheSenderOfMails(t *testing.T) {
	common := Common{Base: "https://id.example.test:8443/v1", Alias: "service"}
	for _, c := range []struct {
		in   Sender
		want mail.Address
	}{
		{Sender{}, mail.Address{Name: "Doorward", Address: "no-reply@id.example.test"}},
		{Sender{Address: "shop@example.test"}, mail.Address{Name: "Doorward", Address: "shop@example.test"}},
		{Sender{Address: "shop@example.test", Name: "Shop"}, mail.Address{Name: "Shop", Address: "shop@example.test"}},
	} {
		if got, err := c.in.Open(common); err != nil || got != c.want {
			t.Errorf("%+v became %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"nobody", "Jo <jo@example.test>", "jo@example.test, al@example.test"} {
		if got, err := (Sender{Address: bad}).Open(common); err == nil || !strings.Contains(err.Error(), "DOORWARD_MAIL_FROM") {
			t.Errorf("%q became %+v, %v", bad, got, err)
		}
	}
}
