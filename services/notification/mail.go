package notification

import (
	"cmp"
	"fmt"
	"html"
	"net/mail"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/macro"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// mailContent is all that a mail is made of.
type mailContent struct {
	delivery store.Delivery
	directoryapi.Mail
	token           secure.Secret     // empty: the mail has no link
	application     *string           // name of the application, if it is needed
	applicationData map[string]string // values of its customData that the template asks for
}

// values returns the values of the macros.
func (s *Service) values(l mailContent) map[string]string {
	known := map[string]string{
		"account.fullName":       personName(l.Account.FullName()),
		"account.username":       userName(l.Account.Username, l.Account.Email),
		"account.email":          singleLine(l.Account.Email),
		"account.directory.name": singleLine(l.Directory.Name),
	}
	// Macros of this product's own, for the default mails.
	known["sender.name"] = singleLine(s.senderName(l))
	known["greeting"] = "Hello,"
	if l.Account.GivenName != nil && personName(*l.Account.GivenName) != "" {
		known["greeting"] = "Hello " + personName(*l.Account.GivenName) + ","
	}
	if l.ResetTokenTTL > 0 {
		known["passwordPolicy.resetTokenTtl"] = strconv.Itoa(l.ResetTokenTTL)
		known["passwordPolicy.resetTokenLifetime"] = hours(l.ResetTokenTTL)
	}
	for macro, value := range map[string]*string{
		"account.givenName": l.Account.GivenName, "account.middleName": l.Account.MiddleName, "account.surname": l.Account.Surname,
	} {
		if value != nil {
			known[macro] = personName(*value)
		}
	}
	if l.application != nil {
		known["application.name"] = singleLine(*l.application)
	}
	for key, value := range l.AccountData {
		known["account.customData."+key] = customValue(value)
	}
	for key, value := range l.DirectoryData {
		known["account.directory.customData."+key] = multiLine(value)
	}
	for key, value := range l.applicationData {
		known["application.customData."+key] = multiLine(value)
	}
	if l.token != "" {
		known["sptoken"] = l.token.Reveal()
		known["sptokenNameValuePair"] = pair(l.token)
		if base := s.linkBase(l.Template); base != "" {
			known["url"] = link(base, l.token)
		}
	}
	return known
}

func hours(n int) string {
	if n == 1 {
		return "1 hour"
	}
	return strconv.Itoa(n) + " hours"
}

// compose writes the mail. Macros stand in bodies only; what stands in a header
// is one line. It fails for an address that no mail can be sent to.
func (s *Service) compose(l mailContent, from origin, now time.Time) (*gomail.Msg, error) {
	to, err := recipient(l.Account.Email)
	if err != nil {
		return nil, err
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.ToMailAddress(to)
	m.FromMailAddress(&from.author)
	m.EnvelopeFromMailAddress(&mail.Address{Address: from.envelope})
	m.Subject(singleLine(l.Template.Subject))
	m.SetMessageIDWithValue(s.messageID(l.delivery))
	m.SetDateWithValue(now)
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notice comes back

	known := s.values(l)
	text := macro.Expand(l.Template.TextBody, known, func(value string) string { return value })
	page := macro.Expand(l.Template.HTMLBody, known, html.EscapeString)
	switch l.Template.MimeType {
	case "text/html":
		m.SetBodyString(gomail.TypeTextHTML, page)
	case "multipart/alternative":
		m.SetBodyString(gomail.TypeTextPlain, text)
		m.AddAlternativeString(gomail.TypeTextHTML, page)
	default:
		m.SetBodyString(gomail.TypeTextPlain, text)
	}
	return m, nil
}

// recipient reads an account's email as the address of a mail, and nothing but
// an address.
func recipient(email string) (*mail.Address, error) {
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email {
		return nil, fmt.Errorf("no mail can be sent to the account's email")
	}
	return &mail.Address{Address: onTheWire(email)}, nil
}

// onTheWire returns an address in the form that every mail server reads: its host
// name is in ASCII.
func onTheWire(address string) string {
	at := strings.LastIndexByte(address, '@')
	return address[:at+1] + asciiHost(address[at+1:])
}

// origin is the author of a mail and its envelope's sender.
type origin struct {
	author   mail.Address // that its reader sees
	envelope string       // that bounces go to
}

// ownOrigin is the origin of a mail that the deployment's server takes. Bounces go
// to the operator, also when the template names another author: its domain has not
// allowed this server to send for it.
func (s *Service) ownOrigin(content mailContent) origin {
	return origin{s.author(content, s.cfg.From.Address), onTheWire(s.cfg.From.Address)}
}

// customOrigin is the origin of a mail that the tenant's own server takes. Its
// author is by default the user of that server where the name is an address, since
// few servers let their users send for others. Bounces go to the author.
func (s *Service) customOrigin(content mailContent, user string) origin {
	address := s.cfg.From.Address
	if to, err := recipient(user); err == nil {
		address = to.Address
	}
	author := s.author(content, address)
	return origin{author, author.Address}
}

// author is the one that the template names. By default it has the address, and
// the name that is configured, else that of the application or the directory.
func (s *Service) author(content mailContent, address string) mail.Address {
	from := mail.Address{Name: s.cfg.From.Name, Address: address}
	if t := content.Template; t.FromEmailAddress != nil {
		if parsed, err := mail.ParseAddress(*t.FromEmailAddress); err == nil {
			from.Address = parsed.Address
		}
	}
	from.Address = onTheWire(from.Address)
	switch {
	case content.Template.FromName != nil:
		from.Name = singleLine(*content.Template.FromName)
	case !s.cfg.FromNamed:
		from.Name = singleLine(s.senderName(content))
	}
	return from
}

// senderName is the name of the application, else of the directory, else of the
// deployment; the administrators' own application and directory go by the name of
// the deployment.
func (s *Service) senderName(content mailContent) string {
	if content.application != nil {
		return *content.application
	}
	if content.Directory.Builtin {
		return s.cfg.From.Name
	}
	return cmp.Or(content.Directory.Name, s.cfg.From.Name)
}

// messageID is the same on every try of a delivery, so that a mail that went
// out twice can be recognised.
func (s *Service) messageID(d store.Delivery) string {
	return d.ID.String() + "@" + s.base.Hostname()
}
