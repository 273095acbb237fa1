package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/mfa/store"
)

type phoneView struct {
	rest.Head
	Number             string    `json:"number"`
	Name               *string   `json:"name"`
	Description        *string   `json:"description"`
	VerificationStatus string    `json:"verificationStatus"`
	Status             string    `json:"status"`
	Account            href.Link `json:"account"`
}

func (v views) phone(p store.Phone) phoneView {
	return phoneView{
		Head:   rest.NewHead(v.base.To("phones", p.ID), p.CreatedAt, p.ModifiedAt),
		Number: p.Number, Name: p.Name, Description: p.Description, VerificationStatus: p.VerificationStatus,
		Status:  p.Status,
		Account: v.base.Link("accounts", p.AccountID),
	}
}
