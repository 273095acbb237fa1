package notification

import (
	"cmp"
	"errors"
	"html"
	"maps"
	"net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/doorward/doorward/pkg/macro"
	"github.com/doorward/doorward/pkg/mailtext"
	"github.com/doorward/doorward/services/notification/store"
)

// macroValues returns the values of the macros of an email template, sanitized (sanitize.go).
func (s *Service) macroValues(content mailContent) map[string]string {
	values := map[string]string{
		"account.fullName":       sanitizeName(content.Account.FullName()),
		"account.username":       sanitizeUsername(content.Account.Username, content.Account.Email),
		"account.email":          sanitizeLine(content.Account.Email),
		"account.directory.name": sanitizeLine(content.Directory.Name),
	}
	// Macros that the default templates use.
	values["sender.name"] = sanitizeLine(s.senderName(content))
	givenName := ""
	if content.Account.GivenName != nil {
		givenName = sanitizeName(*content.Account.GivenName)
	}
	values["greeting"] = mailtext.Greeting(content.language, givenName)
	if content.ResetTokenTTL > 0 {
		values["passwordPolicy.resetTokenTtl"] = strconv.Itoa(content.ResetTokenTTL)
		values["passwordPolicy.resetTokenLifetime"] = mailtext.Hours(content.language, content.ResetTokenTTL)
	}
	for macro, value := range map[string]*string{
		"account.givenName": content.Account.GivenName, "account.middleName": content.Account.MiddleName,
		"account.surname": content.Account.Surname,
	} {
		if value != nil {
			values[macro] = sanitizeName(*value)
		}
	}
	if content.application != nil {
		values["application.name"] = sanitizeLine(*content.application)
	}
	if content.homeURL != nil {
		values["application.homeUrl"] = sanitizeLine(*content.homeURL)
	}
	if content.Account.Locale != nil {
		values["account.locale"] = *content.Account.Locale
	}
	for key, value := range content.values {
		values[key] = sanitizeLine(value)
	}
	for key, value := range content.AccountData {
		values["account.customData."+key] = sanitizeCustomData(value)
	}
	for key, value := range content.DirectoryData {
		values["account.directory.customData."+key] = sanitizeLines(value)
	}
	for key, value := range content.applicationData {
		values["application.customData."+key] = sanitizeLines(value)
	}
	if content.token != "" {
		values["sptoken"] = content.token.Reveal()
		values["sptokenNameValuePair"] = tokenParameter(content.token)
		if base := s.linkBase(content.Template); base != "" {
			values["url"] = addToken(base, content.token)
		}
	}
	return values
}

// compose renders the mail from its email template, with the macros of pkg/macro in place of
// Go's html/template: in the HTML body their values are HTML-escaped (no XSS), and in the subject, as in
// every header, they are one line. compose fails for an email address that no mail can be sent to.
func (s *Service) compose(content mailContent, from fromAddresses, now time.Time) (*gomail.Msg, error) {
	to, err := parseMailAddress(content.Account.Email)
	if err != nil {
		return nil, err
	}
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.ToMailAddress(to)
	m.FromMailAddress(&from.author)
	m.EnvelopeFromMailAddress(&mail.Address{Address: from.envelope})
	values := s.macroValues(content)
	asIs := func(value string) string { return value }
	m.Subject(sanitizeLine(macro.Expand(content.Template.Subject, withoutToken(values), asIs)))
	m.SetMessageIDWithValue(s.messageID(content.delivery))
	m.SetDateWithValue(now)
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notice comes back

	if content.Template.Unchanged {
		m.SetGenHeader("Content-Language", content.language)
	}
	textBody := macro.Expand(content.Template.TextBody, values, asIs)
	htmlBody := macro.Expand(content.Template.HTMLBody, values, html.EscapeString)
	switch content.Template.MimeType {
	case "text/html":
		m.SetBodyString(gomail.TypeTextHTML, htmlBody)
	case "multipart/alternative":
		m.SetBodyString(gomail.TypeTextPlain, textBody)
		m.AddAlternativeString(gomail.TypeTextHTML, htmlBody)
	default:
		m.SetBodyString(gomail.TypeTextPlain, textBody)
	}
	return m, nil
}

// withoutToken returns the values of a subject: mail servers log subjects, and telephones show them on a
// locked screen.
func withoutToken(values map[string]string) map[string]string {
	values = maps.Clone(values)
	for _, name := range []string{"url", "sptoken", "sptokenNameValuePair"} {
		delete(values, name)
	}
	return values
}

// mailAddressPattern matches the addresses that an SMTP command can carry (RFC 5321, section
// 4.1.2). mail.Address writes a local part in quotes where it is no dot-atom. An angle
// bracket, a quote or a backslash is refused, because some mail servers read it as the end of
// the address even within quotes.
var mailAddressPattern = regexp.MustCompile(`^[^\pC\pZ<>"\\@\x{FFFD}]+@[\pL\pM\pN_-]+(\.[\pL\pM\pN_-]+)*$`)

// maxMailAddress is the longest address, in octets and with its angle brackets, that fits
// into a command line of 512 octets (RFC 5321, section 4.5.3.1.4).
const maxMailAddress = 512 - len("RCPT TO:\r\n")

// parseMailAddress returns an email address as a recipient or sender of SMTP. It fails for
// an address that SMTP cannot carry.
func parseMailAddress(email string) (*mail.Address, error) {
	address := &mail.Address{Address: asciiAddress(email)}
	if !mailAddressPattern.MatchString(address.Address) || len(address.String()) > maxMailAddress {
		return nil, errors.New("SMTP cannot carry the email address: a quote, a backslash, an angle bracket or a " +
			"control character in it, a domain that is no host name, or too long")
	}
	return address, nil
}

// asciiAddress returns an email address with its host name in ASCII (punycode), which every
// mail server reads.
func asciiAddress(address string) string {
	at := strings.LastIndexByte(address, '@')
	return address[:at+1] + asciiHost(address[at+1:])
}

// fromAddresses are the author of a mail (From) and the sender of its envelope (MAIL FROM,
// Return-Path).
type fromAddresses struct {
	author   mail.Address // the From that a reader sees
	envelope string       // the address that bounces go to
}

// deploymentFrom returns the addresses of a mail through the deployment's server. Bounces go to
// the operator even if the template names another author, whose domain does not allow this
// server to send for it (SPF).
func (s *Service) deploymentFrom(content mailContent) fromAddresses {
	return fromAddresses{s.author(content, s.cfg.From.Address), asciiAddress(s.cfg.From.Address)}
}

// tenantFrom returns the addresses of a mail through the tenant's own server. By default the
// author is the user of that server, if the user name is an email address, because few
// servers let a user send for others. Bounces go to the author.
func (s *Service) tenantFrom(content mailContent, user string) fromAddresses {
	address := s.cfg.From.Address
	if to, err := parseMailAddress(user); err == nil {
		address = to.Address
	}
	author := s.author(content, address)
	return fromAddresses{author, author.Address}
}

// author returns the From of a mail: what the template names, else the given address with the
// configured name, or with the name of the application or of the directory (senderName).
func (s *Service) author(content mailContent, address string) mail.Address {
	from := mail.Address{Name: s.cfg.From.Name, Address: address}
	if t := content.Template; t.FromEmailAddress != nil {
		if named, err := parseMailAddress(*t.FromEmailAddress); err == nil {
			from.Address = named.Address
		}
	}
	from.Address = asciiAddress(from.Address)
	switch {
	case content.Template.FromName != nil:
		from.Name = sanitizeLine(*content.Template.FromName)
	case !s.cfg.FromNamed:
		from.Name = sanitizeLine(s.senderName(content))
	}
	return from
}

// senderName is the name of the application, else of the directory, else of the deployment.
// The built-in application and directory of administrators have the name of the deployment.
func (s *Service) senderName(content mailContent) string {
	if content.application != nil {
		return *content.application
	}
	if content.Directory.Builtin {
		return s.cfg.From.Name
	}
	return cmp.Or(content.Directory.Name, s.cfg.From.Name)
}

// messageID is the Message-ID of a mail. It is the same in every attempt, so that a mail that
// was sent twice can be recognised as a duplicate.
func (s *Service) messageID(d store.Delivery) string {
	return d.ID.String() + "@" + s.base.Hostname()
}
