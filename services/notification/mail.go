package notification

import (
	"cmp"
	"errors"
	"html"
	"net/mail"
	"regexp"
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

// compose renders the mail from its email template: macros (pkg/macro) in place of Go's
// html/template. Macros stand in bodies only; what stands in a header is one line. It fails for an address that no mail can be sent to.
func (s *Service) compose(l mailContent, from origin, now time.Time) (*gomail.Msg, error) {
	to, err := mailbox(l.Account.Email)
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

// mailboxForm is what an SMTP command can hold as an address (RFC 5321, section
// 4.1.2). In the local part anything else than a dot-atom is put in quotes where
// it is written (mail.Address). Some mail servers read an angle bracket, a quote or
// a backslash as the end of the address even there: none is sent.
var mailboxForm = regexp.MustCompile(`^[^\pC\pZ<>"\\@\x{FFFD}]+@[\pL\pM\pN_-]+(\.[\pL\pM\pN_-]+)*$`)

// maxPath is the longest address, in octets and with its angle brackets, that fits
// into a command line of 512 octets (RFC 5321, section 4.5.3.1.4).
const maxPath = 512 - len("RCPT TO:\r\n")

// mailbox reads a text as the address of a mail, and nothing but an address. It
// fails for one that SMTP cannot carry.
func mailbox(email string) (*mail.Address, error) {
	address := &mail.Address{Address: onTheWire(email)}
	if !mailboxForm.MatchString(address.Address) || len(address.String()) > maxPath {
		return nil, errors.New("SMTP cannot carry the email address: a quote, a backslash, an angle bracket or a control character in it, " +
			"a domain that is no host name, or too long")
	}
	return address, nil
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
	if to, err := mailbox(user); err == nil {
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
		if named, err := mailbox(*t.FromEmailAddress); err == nil {
			from.Address = named.Address
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

// messageID is the same in every attempt at a delivery, so that a mail that went out twice can
// be recognised.
func (s *Service) messageID(d store.Delivery) string {
	return d.ID.String() + "@" + s.base.Hostname()
}
