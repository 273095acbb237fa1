// Package mailtext has the mails of the deployment itself (localisation, i18n): those that are sent as
// long as a tenant has not written a template of its own (docs/interface/mail.md#the-deployments-mails).
// texts has one file for each language of pkg/locale, and mail.html the look of all mails. The English
// texts are also what a new directory shows as its templates (services/directory/emailtemplate.go).
package mailtext

import (
	"cmp"
	"embed"
	"encoding/json"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"github.com/doorward/doorward/pkg/locale"
)

// The mails, by their keys in the files of texts. Most are workflows of directories.
const (
	Verification        = "verification"
	VerificationSuccess = "verificationSuccess"
	Welcome             = "welcome"
	Reset               = "reset"
	ResetSuccess        = "resetSuccess"
	ExistingAccount     = "existingAccount"
	SignUp              = "signUp"
	Invitation          = "invitation"
	FactorAdded         = "factorAdded"
	FactorRemoved       = "factorRemoved"
	SMTPAlert           = "smtpAlert"
	AdminKey            = "adminKey"
)

// Mail is a mail in one language. Its parts have macros (pkg/macro); all of HTML but the values of the
// macros is escaped.
type Mail struct{ Subject, Text, HTML string }

// texts are those of a file, which has the texts of one language.
type texts struct {
	Greeting            string            `json:"greeting"` // with the placeholder {name}
	GreetingWithoutName string            `json:"greetingWithoutName"`
	LinkBelow           string            `json:"linkBelow"` // above the address that the button leads to
	SignIn              string            `json:"signIn"`    // of the link to the application
	Hours               map[string]string `json:"hours"`     // by plural form (CLDR), with the placeholder {n}
	Factors             map[string]string `json:"factors"`   // names of the types of second factors
	Mails               map[string]mail   `json:"mails"`
}

// mail has the texts of one mail. Paragraphs of Text are separated by an empty line.
type mail struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Button  string `json:"button"` // of the link with the token; empty where the mail has none
	Note    string `json:"note"`   // smaller, below
}

var (
	//go:embed texts
	files embed.FS
	//go:embed mail.html
	layout string

	document   = template.Must(template.New("mail").Parse(layout))
	byLanguage = readTexts()
)

func readTexts() map[string]texts {
	all := map[string]texts{}
	for _, name := range locale.Languages {
		content, err := files.ReadFile("texts/" + name + ".json")
		var read texts
		if err == nil {
			err = json.Unmarshal(content, &read)
		}
		if err != nil {
			panic(err) // an embedded file, which a test reads
		}
		all[name] = read
	}
	return all
}

// of returns the texts of a language, in English for an unknown one.
func of(language string) texts {
	if found, ok := byLanguage[language]; ok {
		return found
	}
	return byLanguage[locale.Languages[0]]
}

// Of returns a mail in a language of pkg/locale. Where hasHome, the application has an address for its
// users, and a mail about an account that is ready has a link to it, by the macro application.homeUrl.
func Of(language, name string, hasHome bool) Mail {
	all := of(language)
	t := all.Mails[name]
	view := view{
		Language: language, Direction: "ltr", Start: "left", Subject: t.Subject, Link: "$!{url}", Button: t.Button,
		Note:      t.Note,
		LinkBelow: all.LinkBelow, Paragraphs: append([]string{"$!{greeting}"}, strings.Split(t.Text, "\n\n")...),
	}
	if locale.IsRightToLeft(language) {
		view.Direction, view.Start = "rtl", "right"
	}
	if hasHome && offersSignIn[name] {
		view.SignIn = all.SignIn
	}
	var html strings.Builder
	if err := document.Execute(&html, view); err != nil {
		panic(err) // an embedded template, which a test renders for every mail
	}
	return Mail{Subject: t.Subject, Text: view.text(), HTML: html.String()}
}

// offersSignIn are the mails after which their reader may want to sign in.
var offersSignIn = map[string]bool{VerificationSuccess: true, Welcome: true, ResetSuccess: true, ExistingAccount: true}

// view is what mail.html shows.
type view struct {
	Language, Direction, Start string
	Subject                    string
	Paragraphs                 []string
	Button, Link, LinkBelow    string
	SignIn                     string
	Note                       string
}

// text is the mail in plain text.
func (v view) text() string {
	paragraphs := v.Paragraphs
	if v.Button != "" {
		paragraphs = append(paragraphs, v.Button+":\n"+v.Link)
	}
	if v.SignIn != "" {
		paragraphs = append(paragraphs, v.SignIn+":\n$!{application.homeUrl}")
	}
	if v.Note != "" {
		paragraphs = append(paragraphs, v.Note)
	}
	return strings.Join(paragraphs, "\n\n") + "\n"
}

// Greeting greets a user by the given name, or without one where it is empty.
func Greeting(language, name string) string {
	if name == "" {
		return of(language).GreetingWithoutName
	}
	return strings.ReplaceAll(of(language).Greeting, "{name}", name)
}

// Hours returns a number of hours in words: "24 hours".
func Hours(tag string, n int) string {
	forms := of(tag).Hours
	form := plural.Cardinal.MatchPlural(language.Make(tag), n, 0, 0, 0, 0)
	if byLanguage[tag].Hours == nil {
		form = plural.Cardinal.MatchPlural(language.English, n, 0, 0, 0, 0)
	}
	text := cmp.Or(forms[pluralForms[form]], forms["other"])
	return strings.ReplaceAll(text, "{n}", strconv.Itoa(n))
}

// pluralForms are the names of plural forms in the files.
var pluralForms = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many",
	plural.Other: "other",
}

// Factor returns the name of a type of second factor, or the type itself where it has no name.
func Factor(language, kind string) string {
	if name, ok := of(language).Factors[kind]; ok {
		return name
	}
	return kind
}
