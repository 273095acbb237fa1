package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/rest"
)

type templateView struct {
	rest.Head
	Name             string     `json:"name"`
	Description      *string    `json:"description"`
	FromName         *string    `json:"fromName"`
	FromEmailAddress *string    `json:"fromEmailAddress"`
	Subject          string     `json:"subject"`
	MimeType         string     `json:"mimeType"`
	TextBody         string     `json:"textBody"`
	HTMLBody         string     `json:"htmlBody"`
	DefaultModel     *modelView `json:"defaultModel,omitempty"` // only where the mail has a link
}

type modelView struct {
	LinkBaseURL string `json:"linkBaseUrl"`
}

func (v views) template(t directoryapi.EmailTemplate) templateView {
	view := templateView{
		Head: rest.NewHead(v.Base.To("emailTemplates", t.ID), t.CreatedAt, t.ModifiedAt),
		Name: t.Name, Description: t.Description, FromName: t.FromName, FromEmailAddress: t.FromEmailAddress,
		Subject: t.Subject, MimeType: t.MimeType, TextBody: t.TextBody, HTMLBody: t.HTMLBody,
	}
	if t.LinkBaseURL != nil {
		view.DefaultModel = &modelView{*t.LinkBaseURL}
	}
	return view
}
