package env

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

type config struct {
	Shared struct {
		Level string `env:"DOORWARD_LEVEL" default:"info" help:"level of the log"`
	}
	URL     secure.Secret `env:"OWN_URL,URL" required:"true"`
	Wait    time.Duration `env:"DOORWARD_WAIT" default:"5s" help:"time to wait"`
	Workers int           `env:"DOORWARD_WORKERS" default:"2" min:"1" help:"workers"`
	Open    bool          `env:"DOORWARD_OPEN" help:"whether it is open"`
	Hosts   []string      `env:"DOORWARD_HOSTS" help:"hosts"`
}

func (config) Help() map[string]string { return map[string]string{"OWN_URL": "where the data is"} }

func load(environ ...string) (config, error) {
	source := New(environ)
	var cfg config
	source.Load(&cfg)
	return cfg, source.Err()
}

func TestValuesComeFromTheEnvironment(t *testing.T) {
	cfg, err := load("OWN_URL=a", "URL=b", "DOORWARD_WAIT=250ms", "DOORWARD_WORKERS=7", "DOORWARD_OPEN=true", "DOORWARD_HOSTS=a, b,,c", "PATH=/bin", "DOORWARD_LEVEL=")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.URL.Reveal() != "a" || cfg.Wait != 250*time.Millisecond || cfg.Workers != 7 || !cfg.Open || !slices.Equal(cfg.Hosts, []string{"a", "b", "c"}) || cfg.Shared.Level != "info" {
		t.Fatalf("the configuration is %+v", cfg)
	}
}

func TestTheSecondNameHoldsWhereTheFirstIsAbsent(t *testing.T) {
	if cfg, err := load("URL=b"); err != nil || cfg.URL.Reveal() != "b" {
		t.Fatalf("URL is %q, %v", cfg.URL.Reveal(), err)
	}
}

func TestASecretComesFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err := load("URL_FILE=" + file); err != nil || cfg.URL.Reveal() != "secret" {
		t.Fatalf("the secret of the file is %q, %v", cfg.URL.Reveal(), err)
	}
}

func TestAFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var into struct {
		Secret secure.Secret `env:"DOORWARD_A_SECRET"`
		Reload Reload
	}
	write("first\n")
	source := New([]string{"DOORWARD_A_SECRET_FILE=" + path})
	source.Load(&into)
	write("second\n")
	if err := into.Reload(&into); err != nil || into.Secret != "second" {
		t.Errorf("the secret is read again as %q, %v", into.Secret.Reveal(), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := into.Reload(&into); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("reading an absent file again returned %v", err)
	}
	if err := source.Err(); err != nil {
		t.Errorf("the source has noted %v", err)
	}
}

func TestProblemsAreToldAtOnceAndSayWhatToChange(t *testing.T) {
	_, err := load("DOORWARD_WAIT=soon", "DOORWARD_WORKERS=0", "DOORWARD_WORKRS=3", "DOORWARD_LEVEL=a", "DOORWARD_LEVEL_FILE=/b", "DOORWARD_HOSTS_FILE=/does/not/exist")
	if err == nil {
		t.Fatal("no problem is found")
	}
	for _, want := range []string{"URL is missing: where the data is", `"soon" is not a duration`, "0 is less than 1", "DOORWARD_WORKRS is not a variable of this process", "both DOORWARD_LEVEL and DOORWARD_LEVEL_FILE", "/does/not/exist"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestSetYieldsToTheEnvironment(t *testing.T) {
	source := New([]string{"URL=given", "DOORWARD_LEVEL_FILE=/x"})
	source.SetDefault("URL", "mine")
	source.SetDefault("DOORWARD_LEVEL", "mine")
	source.SetDefault("DOORWARD_WAIT", "1s")
	if source.values["URL"] != "given" || source.values["DOORWARD_LEVEL"] != "" || source.values["DOORWARD_WAIT"] != "1s" {
		t.Fatalf("the values with defaults are %v", source.values)
	}
}

func TestDeclareMakesNamesKnownWithoutReadingThem(t *testing.T) {
	source := New([]string{"DOORWARD_WAIT=soon"})
	source.Declare(new(config))
	if err := source.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	source := New(nil)
	var cfg config
	source.Load(&cfg)
	var out strings.Builder
	source.Help(&out)
	for _, want := range []string{"OWN_URL, else URL", "where the data is (required)", "DOORWARD_WAIT", "(default 5s)", "NAME_FILE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not show %q:\n%s", want, out.String())
		}
	}
}

func TestHelpShowsWhatTheProcessProvides(t *testing.T) {
	source := New(nil)
	source.Group("Data")
	source.DescribeDefault("URL", "a private database")
	source.Unused("DOORWARD_HOSTS")
	source.Declare(&struct {
		URL   string   `env:"OWN_URL,URL" required:"true" help:"where the data is"`
		Hosts []string `env:"DOORWARD_HOSTS" help:"hosts"`
	}{})
	source.Group("Log")
	var cfg config
	source.Load(&cfg)
	var out strings.Builder
	source.Help(&out)
	for _, want := range []string{"Data:\n  OWN_URL, else URL", "(default: a private database)", "\nLog:\n  DOORWARD_LEVEL"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not show %q:\n%s", want, out.String())
		}
	}
	for _, unwanted := range []string{"(required)", "DOORWARD_HOSTS"} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("the help shows %q:\n%s", unwanted, out.String())
		}
	}
}

func TestCheckNotesWhatCannotBeReadAndNotWhatIsAbsent(t *testing.T) {
	source := New([]string{"DOORWARD_WAIT=soon", "DOORWARD_WORKERS=0"})
	source.Check(new(config))
	source.Check(new(config))
	err := source.Err()
	if err == nil || strings.Count(err.Error(), `"soon" is not a duration`) != 1 || !strings.Contains(err.Error(), "0 is less than 1") ||
		strings.Contains(err.Error(), "missing") {
		t.Fatalf("the problems are: %v", err)
	}
}

type misspelled struct {
	URL string `env:"URL"`
}

func (misspelled) Help() map[string]string { return map[string]string{"ULR": "where the data is"} }

func TestAHelpTextOfNoVariableIsAMistakeInTheProgram(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "ULR") {
			t.Errorf("Load of a help text of ULR panicked with %v, want its name", p)
		}
	}()
	New(nil).Load(&misspelled{})
}
