package field_test

import (
	"testing"
	"unicode"

	"github.com/doorward/doorward/pkg/field"
)

func TestACodeIsReadAsItWasMeant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"123456": "123456", " 123 456\n": "123456", "123\u00a0456": "123456", "12\u20093\u3000456": "123456", "\u202a123456\u202c": "123456",
		"\u200b1\ufeff23456": "123456", "１２３４５６": "123456", "١٢٣٤٥٦": "123456", "۱۲۳۴۵۶": "123456", "१२३४५६": "123456", "𝟏𝟐𝟑𝟜𝟝𝟞": "123456",
		"": "", "\u2003": "", "12-34": "12-34", "12a": "12a", "½²": "½²",
	} {
		if got := field.Code(text); got != want {
			t.Errorf("the code %q is read as %q, want %q", text, got, want)
		}
	}
	for _, digits := range unicode.Nd.R16 {
		if (digits.Hi-digits.Lo+1)%10 != 0 || digits.Stride != 1 {
			t.Errorf("the digits from %U to %U are no whole scripts", digits.Lo, digits.Hi)
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if (digits.Hi-digits.Lo+1)%10 != 0 || digits.Stride != 1 {
			t.Errorf("the digits from %U to %U are no whole scripts", digits.Lo, digits.Hi)
		}
	}
}

func TestATelephoneNumberHasNoInvisibleCharacters(t *testing.T) {
	t.Parallel()
	if got := field.PhoneNumber("\u202a+1 888\u00ad 391\u200e 5282\u202c\ufeff"); got != "+1 888 391 5282" {
		t.Errorf("the number is read as %q", got)
	}
}
