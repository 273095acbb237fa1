package pwhash

import (
	"fmt"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/alias"
)

// The vectors of $service2$ are those of docs/interface/accounts.md#password-hashes,
// and two more computed with another implementation of the digests. Those of
// bcrypt come with crypt_blowfish, which is where $2x$ comes from; those of
// longer texts were computed with libxcrypt.
var importVectors = []struct{ password, stored string }{
	{"Changeme1!", "$service2$SHA-256$3$AAECAwQFBgcICQoLDA0ODw==$+mC8VNjL4pfW9AEZcmD6uHTXr3fyJMmF/UG/KleRnEw="},
	{"Changeme1!", "$service2$SHA-512$1000$AAECAwQFBgcICQoLDA0ODw==$GI2H1VvWZTpFfu9a/856TtA7608uMHhfkz0xpvQQoMUXbd60WRq798eVKdvgiSMFBsvtxkmm9OVl6+BszPWm4Q=="},
	{"Changeme1!", "$service2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw=="},
	{"Pässwörd1", "$service2$SHA-1$2$c2FsdA==$0mr04tOWW1fC9eZPR+9YKiUy+pY="},
	{"Pässwörd1", "$service2$SHA-384$10$AAECAwQFBg==$knfINLXT4Pnruz9OxWamRl3oNNpMScqcTU4IxU9AmuZpqMdTMzcaOjXKVml6KUuT"},

	{"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"},
	{"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"},
	{"U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"},
	{"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"},
	{"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored", "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui"},
	{strings.Repeat("\xaa", 72) + "chars after 72 are ignored as usual", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.swQOIzjOiJ9GHEPuhEkvqrUyvWhEMx6"},
	{"\xa3", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"},
	{"\xff\xff\xa3", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"},
	{"\xff\xff\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"},
	{"\xff\xff\xa3", "$2b$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"},
	{"\xa3", "$2a$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"},
	{"\xa3", "$2b$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"},
	{"\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.Sa7shbm4.OzKpvFnX1pQLmQW96oUlCq"},
	{"1\xa3345", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"},
	{"\xff\xa334\xff\xff\xff\xa3345", "$2x$05$/OK.fbVrR/bpIqNJ5ianF.o./n25XVfn6oAPaUvHe.Csk4zRfsYPi"},
	{"\xff\xa3345", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.nRht2l/HRhr6zmCp9vYUvvsqynflf9e"},
	{"\xd1\x91", "$2x$05$6bNw2HLQYeqHYyBfLMsv/OiwqTymGIGzFsA4hOTWebfehXHNprcAS"},
	{"\xd0\xc1\xd2\xcf\xcc\xd8", "$2x$05$6bNw2HLQYeqHYyBfLMsv/O9LIGgn8OMzuDoHfof8AQimSGfcSWxnS"},
	{"pässwörd", "$2b$04$CCCCCCCCCCCCCCCCCCCCC.r5gqJaIw/Et6H9KstP3pEKn0VB0g6zW"},
	{"pässwörd", "$2x$04$CCCCCCCCCCCCCCCCCCCCC.EV6cYKIwSlXnbxn4DKdxWJ040xWNiA6"},
	{strings.Repeat("漢字", 13), "$2y$04$CCCCCCCCCCCCCCCCCCCCC.Re64gG01ZfYq3RAJhn/wC13Esx0VBHy"},
	{strings.Repeat("漢字", 13), "$2x$04$CCCCCCCCCCCCCCCCCCCCC.hLSeMbk1ijTW8iWqQZddIXNbyzWLj7u"},
	{strings.Repeat("a", 71), "$2a$04$CCCCCCCCCCCCCCCCCCCCC.ZP48wSDJeZC4KEEZRkahyfLke0vxZNC"},
	{strings.Repeat("a", 72), "$2a$04$CCCCCCCCCCCCCCCCCCCCC.mDyzbhj.9K0apb9O/AGMWwoLXiYAu6u"},
	{strings.Repeat("a", 80), "$2a$04$CCCCCCCCCCCCCCCCCCCCC.mDyzbhj.9K0apb9O/AGMWwoLXiYAu6u"},
}

func TestAnImportedHashVerifiesAsItsExporterDid(t *testing.T) {
	for _, v := range importVectors {
		stored, err := ParseImported(v.stored, "service")
		if err != nil {
			t.Errorf("%s: %v", v.stored, err)
			continue
		}
		for password, want := range map[string]bool{v.password: true, "x" + v.password: false} {
			if match, cost, err := Compare(stored, []byte(password)); match != want || cost != (Cost{}) || err != nil {
				t.Errorf("Compare(%s, %q) = %v, %v, %v; want %v and no cost", v.stored, password, match, cost, err, want)
			}
		}
	}
}

func TestTheAliasStandsInThePrefix(t *testing.T) {
	const tail = "2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw=="
	for _, c := range []struct {
		word  string
		alias alias.Alias
	}{{"acme", "acme"}, {"service", "acme"}, {"service", "service"}} {
		if stored, err := ParseImported("$"+c.word+tail, c.alias); err != nil || stored != "$service"+tail {
			t.Errorf("ParseImported($%s2$…, %s) = %s, %v", c.word, c.alias, stored, err)
		}
	}
	if stored, err := ParseImported("$acme"+tail, "other"); err == nil {
		t.Errorf("a prefix of another deployment: %s", stored)
	}
}

func TestAHashThatCannotBeImportedIsRefusedWithItsReason(t *testing.T) {
	const salted = "CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy"
	const md5 = "6/yL/4bXIDITOJh+cuAmQw=="
	for _, c := range []struct{ text, reason string }{
		{"", "begins with none"},
		{"Changeme1!", "begins with none"},
		{"$1$salt$hash", "begins with none"},
		{"$2$05$" + salted, "begins with none"},
		{"$2c$05$" + salted, "begins with none"},
		{"$2ab$05$" + salted, "begins with none"},
		{" $2a$05$" + salted, "begins with none"},
		{cheap.Dummy(), "begins with none"},
		{"$2a$03$" + salted, "cost"},
		{"$2a$15$" + salted, "cost"},
		{"$2a$31$" + salted, "cost"},
		{"$2a$32$" + salted, "cost"},
		{"$2a$+5$" + salted, "cost"},
		{"$2a$5$" + salted, "two digits"},
		{"$2a$05$" + salted[1:], "53 characters"},
		{"$2a$05$" + salted + ".", "53 characters"},
		{"$2a$05$" + "\n" + salted[1:], "Base64"},
		{"$2a$05$" + "=" + salted[1:], "Base64"},
		{"$2a$05$" + salted[:52] + "=", "Base64"},
		{"$service2$", "parted by $"},
		{"$service2$MD5$1$" + md5, "parted by $"},
		{"$service2$MD5$1$$" + md5 + "$", "parted by $"},
		{"$service2$md5$1$$" + md5, "algorithm"},
		{"$service2$SHA-224$1$$" + md5, "algorithm"},
		{"$service2$MD5$0$$" + md5, "iterations"},
		{"$service2$MD5$-1$$" + md5, "iterations"},
		{"$service2$MD5$+1$$" + md5, "iterations"},
		{"$service2$MD5$$$" + md5, "iterations"},
		{"$service2$MD5$1e3$$" + md5, "iterations"},
		{"$service2$MD5$1000001$$" + md5, "iterations"},
		{"$service2$MD5$99999999999999999999$$" + md5, "iterations"},
		{"$service2$MD5$1$AA$" + md5, "salt"},
		{"$service2$MD5$1$AAEC\n$" + md5, "salt"},
		{"$service2$MD5$1$AA_-$" + md5, "salt"},
		{"$service2$MD5$1$$", "16 bytes of MD5"},
		{"$service2$MD5$1$$" + md5[:22], "16 bytes of MD5"},
		{"$service2$SHA-256$1$$" + md5, "32 bytes of SHA-256"},
		{"$service2$MD5$1$" + strings.Repeat("AAAA", 128) + "$" + md5, "512 characters"},
	} {
		_, err := ParseImported(c.text, "service")
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("ParseImported(%.40q) = %v; want a refusal that names %q", c.text, err, c.reason)
		}
	}
}

func TestTheCostliestHashIsImported(t *testing.T) {
	for _, text := range []string{
		"$2b$04$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy", "$2b$14$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy",
		"$service2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw==", "$service2$MD5$1000000$$6/yL/4bXIDITOJh+cuAmQw==",
	} {
		if _, err := ParseImported(text, "service"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzImportedHash(f *testing.F) {
	for _, v := range importVectors {
		f.Add(v.stored)
	}
	f.Add("$acme2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw==")
	f.Fuzz(func(t *testing.T, text string) {
		stored, err := ParseImported(text, "acme")
		if err != nil {
			return
		}
		if again, err := ParseImported(stored, "other"); err != nil || again != stored {
			t.Fatalf("what %q is stored as is read as %q, %v", text, again, err)
		}
		if form, err := parse(stored); err != nil || form.matches == nil || form.cost != (Cost{}) {
			t.Fatalf("parse(%q) = %v, %v", stored, form.cost, err)
		}
		var cost, rounds uint64
		if _, err := fmt.Sscanf(stored[3:], "$%d$", &cost); err == nil && cost > maxBcryptCost {
			t.Fatalf("%q is too costly", stored)
		}
		if parts := strings.Split(stored, "$"); parts[1] == "service2" {
			if _, err := fmt.Sscan(parts[3], &rounds); err != nil || rounds > maxIterations {
				t.Fatalf("%q is too costly", stored)
			}
		}
	})
}
