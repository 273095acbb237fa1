package secure

import "testing"

func TestEveryCharacterHasItsClasses(t *testing.T) {
	for _, c := range []struct {
		password string
		want     Characters
	}{
		{"aß", Characters{Lower: 2}},
		{"AЖ", Characters{Upper: 2}},
		{"Ωω", Characters{Upper: 1, Lower: 1}},
		{"ǅ", Characters{Upper: 1}}, // title case; its caron is in its compatibility decomposition alone
		{"09", Characters{Numeric: 2}},
		{"٣४", Characters{Numeric: 2}},
		{"½Ⅷ²", Characters{Numeric: 3}},
		{"!$€_~§", Characters{Symbol: 6}},
		{"≠", Characters{Symbol: 1}},
		{"😀", Characters{Symbol: 1}},
		{"❤\ufe0f", Characters{Symbol: 1}},
		{" \t\u00a0", Characters{}},
		{"漢ªא", Characters{}},
		{"é", Characters{Lower: 1, Diacritic: 1}},
		{"e\u0301", Characters{Lower: 1, Diacritic: 1}},
		{"É", Characters{Upper: 1, Diacritic: 1}},
		{"ế", Characters{Lower: 1, Diacritic: 1}}, // two marks, one letter
		{"q\u0303", Characters{Lower: 1, Diacritic: 1}},
		{"йが", Characters{Lower: 1, Diacritic: 2}},
		{"øłđæ", Characters{Lower: 4}},
		{"한", Characters{}},
		{"\u0301", Characters{}},
		{"1\u0301", Characters{Numeric: 1}},
	} {
		if got := CountCharacters(c.password); got != c.want {
			t.Errorf("CountCharacters(%q) = %+v, want %+v", c.password, got, c.want)
		}
	}
}
