package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completed returns what a shell offers after a command line, whose last argument is being typed.
func completed(t *testing.T, args ...string) (offers []string, files bool) {
	t.Helper()
	var out, problems strings.Builder
	if status := Main(append([]string{cobra.ShellCompNoDescRequestCmd}, args...), strings.NewReader(""), &out, &problems); status != 0 {
		t.Fatalf("%v: %d, %s", args, status, problems.String())
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSpace(line)
		switch directive, ends := strings.CutPrefix(line, ":"); {
		case ends:
			files = directive == "0"
		case strings.HasPrefix(line, args[len(args)-1]) && !strings.HasPrefix(line, "_activeHelp_"): // the shell filters
			offers = append(offers, line)
		}
	}
	return offers, files
}

func TestValuesAreCompleted(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out, problems strings.Builder
	if status := Main([]string{"next", "--pool", "payments", "--worker", "17"}, strings.NewReader(""), &out, &problems); status != 0 {
		t.Fatal(problems.String())
	}
	for line, want := range map[string]string{
		"next --color ":                          "always auto never",
		"next --kind s":                          "segment sequence serial snowflake",
		"next --format base":                     "base2 base32 base36 base58 base62 base64 base64url",
		"next --layout tw":                       "twitter",
		"next --clock ":                          "steady virtual wall",
		"next --start ":                          "carry random zero",
		"next --check l":                         "luhn",
		"layout tw":                              "twitter",
		"layout twitter --formula ":              "js mysql postgres",
		"serve --log j":                          "json",
		"workers list --pool ":                   "payments",
		"workers release ":                       "",
		"workers release --pool payments ":       "17",
		"workers release --pool payments 17 ":    "",
		"workers list --store redis":             "redis:// rediss://",
		"next --name ":                           "",
		"verify --format bi":                     "binary",
		"workers list --store sqlite:no --pool ": "",
	} {
		offers, files := completed(t, strings.Split(line, " ")...)
		slices.Sort(offers)
		if got := strings.Join(offers, " "); got != want || files {
			t.Errorf("%s: %q, files %v; want %q", line, got, files, want)
		}
	}
	if _, files := completed(t, "serve", "--config", ""); !files {
		t.Error("no names of files for --config")
	}
}

// Every flag completes something, or says that there is nothing to complete.
func TestEveryFlagHasACompletion(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			file := strings.Contains(f.Usage, "file") || strings.Contains(f.Usage, "folder") || f.Name == "config"
			if complete := completionOf(cmd, f); complete == nil && f.Value.Type() != "bool" && !file {
				t.Errorf("%s --%s offers names of files", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot([]string{cobra.ShellCompRequestCmd}))
}

func TestAMistypedNameIsGuessed(t *testing.T) {
	for line, want := range map[string]string{
		"next --layuot x":     "unknown flag: --layuot: did you mean --layout?",
		"decode --frmat hex":  "unknown flag: --frmat: did you mean --format?",
		"next --count 5":      "unknown flag: --count: did you mean -n?\n",
		"serve --port 8080":   "unknown flag: --port: did you mean --http?\n",
		"next --zzzzzzz":      "unknown flag: --zzzzzzz\n",
		"next --kind uid":     "objectid are allowed: did you mean uuid?\n",
		"decode --kind uid 5": "objectid are allowed: did you mean uuid?\n",
		"nxt":                 `unknown command "nxt" for "firn": did you mean next?` + "\n",
		"workers lst":         "relax are allowed: did you mean list?\n",
		"completion bsh":      "zsh are allowed: did you mean bash or zsh?\n",
	} {
		var out, problems strings.Builder
		if status := Main(strings.Fields(line), strings.NewReader(""), &out, &problems); status != exitUsage || !strings.Contains(problems.String(), want) {
			t.Errorf("%s: %d, %s", line, status, problems.String())
		}
	}
}
