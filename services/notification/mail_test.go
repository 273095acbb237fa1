package notification

import (
	"bytes"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

var clock = time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC)

const token = secure.Secret("5ZxK2mQ8vT1bN7cR4wL0pA")

func text(s string) *string { return &s }

// verification is a letter as the default template of a directory makes it.
func verification() mailContent {
	return mailContent{
		delivery: store.Delivery{ID: id.New(clock), Workflow: directoryapi.Verification},
		token:    token,
		Mail: directoryapi.Mail{
			Template: directoryapi.EmailTemplate{
				Workflow: directoryapi.Verification, Subject: "Verify your account", MimeType: "text/plain",
				TextBody: "Hello $!{account.givenName},\n\nopen $!{url} please.\n",
				HTMLBody: `<p>Hello $!{account.givenName},</p><a href="$!{url}">$!{url}</a>`,
			},
			Account: directoryapi.Account{Email: "jo@example.test", Username: "jo", GivenName: text("Jo"),
				Surname: text("Doe")},
			Directory: directoryapi.Directory{Name: "Customers"},
		},
	}
}

func writer() *Service {
	return &Service{base: "https://id.example.test:8443/v1",
		cfg: Config{From: mail.Address{Name: "Service", Address: "no-reply@id.example.test"}}}
}

// read composes the letter and reads the mail as a mail program does.
func read(t *testing.T, l mailContent) mailtest.Message {
	t.Helper()
	m, err := writer().compose(l, writer().deploymentFrom(l), clock)
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if _, err := m.WriteTo(&raw); err != nil {
		t.Fatal(err)
	}
	read, err := mailtest.Parse(raw.Bytes())
	if err != nil {
		t.Fatalf("%v:\n%s", err, raw.String())
	}
	for line := range strings.SplitSeq(read.Raw, "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("a line is longer than a mail server must take, or broken: %.80q", line)
		}
	}
	return read
}

func TestAMailIsParsedStrictly(t *testing.T) {
	const page = "https://id.example.test:8443/emailVerificationTokens?sptoken=" + string(token)
	for _, c := range []struct{ kind, text, html string }{
		{"text/plain", "Hello Jo,\n\nopen " + page + " please.\n", ""},
		{"text/html", "", `<p>Hello Jo,</p><a href="` + page + `">` + page + `</a>`},
		{"multipart/alternative", "Hello Jo,\n\nopen " + page + " please.\n", `<p>Hello Jo,</p><a href="` + page + `">` +
			page + `</a>`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			l := verification()
			l.Template.MimeType = c.kind
			m := read(t, l)
			if m.Type != c.kind || m.Text != c.text || m.HTML != c.html {
				t.Errorf("got %s:\n%s\n%s", m.Type, m.Text, m.HTML)
			}
			if m.Subject != "Verify your account" || m.To != "jo@example.test" || m.From != "no-reply@id.example.test" ||
				m.FromName != "Customers" {
				t.Errorf("the header is %+v", m)
			}
			if want := l.delivery.ID.String() + "@id.example.test"; m.ID != want {
				t.Errorf("the Message-ID is %s, want %s", m.ID, want)
			}
			if date, err := m.Header.Date(); err != nil || !date.Equal(clock) {
				t.Errorf("the date is %v, %v", date, err)
			}
			if got := m.Header.Get("Auto-Submitted"); got != "auto-generated" {
				t.Errorf("Auto-Submitted is %q", got)
			}
		})
	}
}

func TestEveryMacroHasItsValue(t *testing.T) {
	l := verification()
	l.Account.MiddleName, l.application = text("M"), text("Shop & Co")
	l.Template.TextBody = "${account.givenName}|${account.middleName}|${account.surname}|${account.fullName}|${account.username}|${account.email}|" +
		"${account.directory.name}|${application.name}|${sptoken}|${sptokenNameValuePair}|$!{account.customData.color}|${application.customData.color}"
	want := "Jo|M|Doe|Jo M Doe|jo|jo@example.test|Customers|Shop & Co|" + string(token) + "|sptoken=" + string(token) +
		"||${application.customData.color}"
	if got := read(t, l).Text; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	t.Run("without a token or an application", func(t *testing.T) {
		l := verification()
		l.Template.Workflow, l.token = directoryapi.Welcome, ""
		l.Template.TextBody = "[$!{url}$!{sptoken}$!{sptokenNameValuePair}$!{application.name}] ${url}"
		if got := read(t, l).Text; got != "[] ${url}" {
			t.Errorf("got %s", got)
		}
	})
}

func TestHostileTextStaysText(t *testing.T) {
	l := verification()
	l.Template.MimeType = "multipart/alternative"
	l.Account.GivenName = text("Jo\r\nBcc: eve@evil.example\r\n\r\n<script>alert(1)</script> https://evil.example/win " +
		"${sptoken} $!{url}")
	l.Directory.Name = "\r\n.\r\nQUIT\r\n"
	l.Template.TextBody += "$!{account.directory.name}\n.\n"
	l.Template.Subject = "Hi\r\nBcc: eve@evil.example\r\n\r\n$!{sptoken} \u202e" + strings.Repeat("ü", 200)
	l.Template.FromName = text("Shop\" <eve@evil.example>\r\nBcc: eve@evil.example, " + strings.Repeat("ß", 200))
	l.Template.FromEmailAddress = text("shop@example.test\r\nBcc: eve@evil.example")
	m := read(t, l)

	head, _, _ := strings.Cut(m.Raw, "\r\n\r\n")
	if m.Header.Has("Bcc") || strings.Contains(head, "\r\nBcc") {
		t.Errorf("a header was injected:\n%s", m.Raw)
	}
	if m.To != "jo@example.test" || m.From != "no-reply@id.example.test" {
		t.Errorf("the mail goes from %s to %s", m.From, m.To)
	}
	if !strings.HasPrefix(m.FromName, `Shop" <eve@evil.example>  Bcc: `) || !strings.HasSuffix(m.FromName, "ßß") {
		t.Errorf("the name of the sender became %q", m.FromName)
	}
	if !strings.HasPrefix(m.Subject, "Hi  Bcc: eve@evil.example     ü") || !strings.HasSuffix(m.Subject, "üü") {
		t.Errorf("the subject became %q", m.Subject)
	}
	for _, body := range []string{m.Text, m.HTML} {
		if strings.Contains(body, "evil.example") || mailtest.Token(body) != string(token) {
			t.Errorf("a name brought a link, or the link is lost:\n%s", body)
		}
		if !strings.Contains(body, "${sptoken} $!{url}") {
			t.Errorf("the macros of a name were read:\n%s", body)
		}
	}
	if strings.Contains(m.HTML, "<script>") || !strings.Contains(m.HTML, "&lt;script&gt;") {
		t.Errorf("a name brought markup:\n%s", m.HTML)
	}
	if !strings.HasSuffix(m.Text, "\n.\n") {
		t.Errorf("the text was cut: %q", m.Text)
	}
}

func TestCustomDataStandsInMails(t *testing.T) {
	l := verification()
	l.AccountData = map[string]string{"plan": "gold", "version": "1.2.3", "ad": "win at http://evil.example now",
		"lines": "a\r\nb"}
	l.DirectoryData = map[string]string{"address": "Street 1\r\nTown", "site": "https://shop.example.test"}
	l.applicationData = map[string]string{"support": "<help@shop.example.test>", "trick": "$!{sptoken}"}
	l.Template.MimeType = "multipart/alternative"
	l.Template.TextBody = "${account.customData.plan}|$!{account.customData.version}|$!{account.customData.ad}|$!{account.customData.lines}|$!{account.customData.none}|${account.customData.none}\n" +
		"$!{account.directory.customData.address}|$!{account.directory.customData.site}\n${application.customData.support}|$!{application.customData.trick}\n"
	l.Template.HTMLBody = "<p>$!{application.customData.support}</p>"
	m := read(t, l)
	want := "gold|1.2.3|win at now|a b||${account.customData.none}\nStreet " +
		"1\nTown|https://shop.example.test\n<help@shop.example.test>|$!{sptoken}\n"
	if strings.ReplaceAll(m.Text, "a  b", "a b") != want {
		t.Errorf("got  %q\nwant %q", m.Text, want)
	}
	if m.HTML != "<p>&lt;help@shop.example.test&gt;</p>" {
		t.Errorf("the HTML is %q", m.HTML)
	}
}

func TestTheResetMailTellsTheLifetimeOfItsLink(t *testing.T) {
	l := verification()
	l.Template.Workflow, l.Template.TextBody = directoryapi.Reset,
		"$!{url} ${passwordPolicy.resetTokenTtl} ${passwordPolicy.resetTokenLifetime}."
	for hours, want := range map[int]string{1: " 1 1 hour.", 3: " 3 3 hours.", 24: " 24 24 hours."} {
		l.ResetTokenTTL = hours
		if got := read(t, l).Text; !strings.HasSuffix(strings.TrimSpace(got), want) {
			t.Errorf("the mail says %q, want %q", got, want)
		}
	}
}

func TestAMailNamesTheApplicationOrTheDirectory(t *testing.T) {
	s, content := writer(), verification()
	want := func(name string) {
		t.Helper()
		if got := s.deploymentFrom(content).author.Name; got != name {
			t.Errorf("the mail comes from %q, want %q", got, name)
		}
		if got := s.tenantFrom(content, "relay").author.Name; got != name {
			t.Errorf("through the tenant's server the mail comes from %q, want %q", got, name)
		}
	}
	says := func(want string) {
		t.Helper()
		if got := s.macroValues(content); got["greeting"]+" "+got["sender.name"] != want {
			t.Errorf("the mail says %q and %q, want %q", got["greeting"], got["sender.name"], want)
		}
	}
	want("Customers")
	says("Hello Jo, Customers")
	content.application, content.Account.GivenName = text("Shop\r\nBcc: x"), text(" ")
	want("Shop  Bcc: x")
	says("Hello, Shop  Bcc: x")
	content.Account.GivenName = nil
	says("Hello, Shop  Bcc: x")
	bare := content
	content.application, content.Directory.Name = nil, ""
	says("Hello, Service")
	content.Directory.Name, content.Directory.Builtin = "Service Administrators", true
	says("Hello, Service")
	content = bare
	s.cfg.FromNamed = true
	want("Service")
	content.Template.FromName = text("Support")
	want("Support")
}

func TestATemplateMayNameItsSender(t *testing.T) {
	l := verification()
	l.Template.FromName, l.Template.FromEmailAddress = text("Shop"), text("shop@example.test")
	if m := read(t, l); m.From != "shop@example.test" || m.FromName != "Shop" {
		t.Errorf("the mail comes from %s <%s>", m.FromName, m.From)
	}
}

func TestAnInternationalAddressIsSentInASCII(t *testing.T) {
	t.Parallel()
	for author, want := range map[string]string{"shop@bücher.test": "shop@xn--bcher-kva.test",
		"söhne@bücher.test": "söhne@xn--bcher-kva.test"} {
		t.Run(author, func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{})
			o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
				l := verification()
				l.Template.Workflow, l.Template.FromEmailAddress = in.Workflow, &author
				return l.Mail, nil
			})
			s := o.service(func(c *Config) { c.From.Address = "no-reply@bücher.test" })
			o.run(s)
			o.order(s, 1)
			o.await("sent", all(store.Sent))
			if m := o.mail.Await(t, 1)[0]; m.From != want || m.EnvelopeFrom != "no-reply@xn--bcher-kva.test" {
				t.Errorf("the mail comes from %s, its bounces go to %s", m.From, m.EnvelopeFrom)
			}
		})
	}
	t.Run("through the tenant's own server", func(t *testing.T) {
		from := writer().tenantFrom(mailContent{Mail: directoryapi.Mail{Template: directoryapi.EmailTemplate{FromEmailAddress: text("shop@bücher.test")}}}, "relay")
		if from.author.Address != "shop@xn--bcher-kva.test" || from.envelope != from.author.Address {
			t.Errorf("the mail comes from %s, its bounces go to %s", from.author.Address, from.envelope)
		}
	})
}

func TestMailAddressesAreValidated(t *testing.T) {
	for email, want := range map[string]string{
		"jo@example.test":          "<jo@example.test>",
		"Jo+tag@Example.test":      "<Jo+tag@example.test>",
		"jo@bücher.test":           "<jo@xn--bcher-kva.test>",
		"jö@example.test":          "<jö@example.test>",
		"jo@my_host.example.test":  "<jo@my_host.example.test>",
		"jo@mailhost":              "<jo@mailhost>",
		"jo..doe@example.test":     `<"jo..doe"@example.test>`,
		".jo@example.test":         `<".jo"@example.test>`,
		"jo.@example.test":         `<"jo."@example.test>`,
		"a,b@example.test":         `<"a,b"@example.test>`,
		"(x)jo@example.test":       `<"(x)jo"@example.test>`,
		"jo:x;[y]@example.test":    `<"jo:x;[y]"@example.test>`,
		"Jo<eve@example.test>":     "",
		"<eve@example.test>":       "",
		"jo@example.test>":         "",
		"jo>@example.test":         "",
		`"jo"@example.test`:        "",
		`jo\@example.test`:         "",
		"jo doe@example.test":      "",
		"jo\u00a0doe@example.test": "",
		"jo\x00@example.test":      "",
		"jo\xff@example.test":      "",
		"jo@exam\r\nple.test":      "",
		"jo@example..test":         "",
		"jo@.example.test":         "",
		"jo@[127.0.0.1]":           "",
		"jo@a,b.test":              "",
		"jo@example.test,al":       "",
		"jo@al@example.test":       "",
		"jo":                       "",
		"@example.test":            "",
		"":                         "",
		strings.Repeat("ä", 240) + "@bücher.test": "<" + strings.Repeat("ä", 240) + "@xn--bcher-kva.test>",
		strings.Repeat("ä", 241) + "@bücher.test": "",
	} {
		got, err := parseMailAddress(email)
		if (err != nil) != (want == "") || (err == nil && got.String() != want) {
			t.Errorf("%q became %v, %v; want %q", email, got, err, want)
		}
	}
}

// Some carriers give out addresses that RFC 5322 does not allow.
func TestALocalPartThatIsNoDotAtomIsQuoted(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	emails := []string{"jo..doe@example.test", "jo.@example.test", "a,b:(c)@example.test", "Jo<eve@example.test>",
		"jo@example.test> SIZE=1"}
	o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
		l := verification()
		o.mu.Lock()
		defer o.mu.Unlock()
		l.Template.Workflow, l.Account.Email, emails = in.Workflow, emails[0], emails[1:]
		return l.Mail, nil
	})
	s := o.service(func(c *Config) { c.Senders = 1 })
	o.run(s)
	o.order(s, len(emails))
	rows := o.await("sent or failed", func(rows []row) bool {
		return !slices.ContainsFunc(rows, func(r row) bool { return r.State == store.Pending })
	})
	failed := 0
	for _, r := range rows {
		if r.State == store.Failed && strings.HasPrefix(r.LastError, "SMTP cannot carry the email address") {
			failed++
		}
	}
	var to []string
	for _, m := range o.mail.Taken() {
		if m.EnvelopeTo != m.To {
			t.Errorf("a mail to %s is sent to %s", m.To, m.EnvelopeTo)
		}
		to = append(to, m.To)
	}
	slices.Sort(to)
	if failed != 2 || !slices.Equal(to, []string{"a,b:(c)@example.test", "jo..doe@example.test", "jo.@example.test"}) {
		t.Errorf("%d mails failed, the others went to %q", failed, to)
	}
}
