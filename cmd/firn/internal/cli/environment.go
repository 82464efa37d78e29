package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// environment is the annotation of a flag whose value comes from the environment.
const environment = "firn_environment"

// variable names the environment variable of a flag.
func variable(flag string) string {
	return "FIRN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags not given on the command line from FIRN_….
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		value, ok := os.LookupEnv(variable(f.Name))
		if !ok {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %w", unreadable(f, variable(f.Name), variable(f.Name)+"=", value)))
			return
		}
		errs = append(errs, flags.SetAnnotation(f.Name, environment, []string{variable(f.Name)}))
	})
	return errors.Join(errs...)
}

// ofService matches the variables that Kubernetes gives containers for a Service named firn, or firn-something: FIRN_PORT,
// FIRN_SERVICE_HOST, FIRN_PORT_7070_TCP_ADDR.
var ofService = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`_PORT(_|$)|_SERVICE_`) })

// misspelt returns an error about each variable that is not of a flag and near to that of one. Variables that are near to
// none are left alone: they may belong to another program.
func misspelt(flags *pflag.FlagSet, environ []string) error {
	var errs []error
	var known map[string]bool
	for _, each := range environ {
		name, _, _ := strings.Cut(each, "=")
		if !strings.HasPrefix(name, "FIRN_") || ofService().MatchString(name) {
			continue
		}
		flags.VisitAll(func(f *pflag.Flag) {
			meant := variable(f.Name)
			if !isSlip(name, meant) {
				return
			}
			if known == nil { // making all commands takes as long as a lease
				known = variables(Command())
			}
			if !known[name] {
				errs = append(errs, fmt.Errorf("environment variable %s is no setting: did you mean %s?", name, meant))
			}
		})
	}
	return errors.Join(errs...)
}

// isSlip reports whether one wrong letter or swap, or two in a long name, make name of the variable meant. In shorter ones
// any letter would be a slip.
func isSlip(name, meant string) bool {
	letters := len(meant) - len("FIRN_")
	return letters >= 4 && failure.Distance(name, meant) <= min(letters/4, 2) && name != meant
}

// variables returns the environment variables that a command and those below it read.
func variables(cmd *cobra.Command) map[string]bool {
	all := map[string]bool{"FIRN_TOKEN": true}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all[variable(f.Name)] = true })
	for _, sub := range cmd.Commands() {
		maps.Copy(all, variables(sub))
	}
	return all
}

// byEnvironment reports whether a flag's value comes from the environment.
func byEnvironment(f *pflag.Flag) bool { return f != nil && len(f.Annotations[environment]) > 0 }

// given reports whether a flag is on the command line.
func given(flags *pflag.FlagSet, name string) bool {
	return flags.Changed(name) && !byEnvironment(flags.Lookup(name))
}

// origin names a flag as it was set: --pool, or the environment variable.
func origin(flags *pflag.FlagSet, name string) string {
	if byEnvironment(flags.Lookup(name)) {
		return "environment variable " + variable(name)
	}
	return "--" + name
}

// variablesInError returns the environment variables whose values an error contains without their names: the reader may not
// know that they are set.
func variablesInError(flags *pflag.FlagSet, text string) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		if byEnvironment(f) && !strings.Contains(text, name) &&
			(strings.Contains(text, os.Getenv(name)) || strings.Contains(text, f.Value.String())) {
			names = append(names, name)
		}
	})
	return names
}

// flagError adds to the error about an unreadable flag what is allowed. It returns other errors unchanged.
func flagError(flags *pflag.FlagSet, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		name := missing.GetSpecifiedName()
		if f := flags.Lookup(elsewhere[name]); f != nil {
			return fmt.Errorf("%w: did you mean %s?", err, flagName(f))
		}
		for _, s := range settings.All() {
			if f := flags.Lookup(s.Flag); s.Key == name && f != nil && !f.Hidden {
				return fmt.Errorf("%w: did you mean --%s?", err, s.Flag)
			}
		}
		return fmt.Errorf("%w%s", err, failure.DidYouMean("--"+name, names))
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	f := invalid.GetFlag()
	name := flagName(f)
	assign := name + " "
	if f.NoOptDefVal != "" {
		assign = name + "="
	}
	return unreadable(f, name, assign, invalid.GetValue())
}

// elsewhere maps what other programs call a flag to its name here.
var elsewhere = map[string]string{"count": "n", "port": "http", "listen": "http", "address": "http"}

func flagName(f *pflag.Flag) string {
	if f.Name == f.Shorthand {
		return "-" + f.Name
	}
	return "--" + f.Name
}

// unreadable returns the error about a value that does not fit its flag. Assign is the beginning of the example, such
// as "--n ".
func unreadable(f *pflag.Flag, name, assign, value string) error {
	kind, allowed, example := allowedValues(f)
	if kind != "" {
		kind = " is not a valid " + kind
	}
	return fmt.Errorf("%s %q%s: %s, as in %s%s", name, failure.Clip(value, 64), kind, allowed, assign, example)
}

// allowedValues describes the values of a flag. If kind is empty, allowed says everything.
func allowedValues(f *pflag.Flag) (kind, allowed, example string) {
	most := func(what string, n int64, example string) [3]string {
		return [3]string{"number of " + what, fmt.Sprintf("1 to %d are allowed", n), example}
	}
	if known, ok := map[string][3]string{
		"n":         most("ids", int64(firn.MaxID), "5"),
		"step":      most("ids", maxStep, "1000"),
		"callers":   most("callers", maxCallers, "100"),
		"batch":     most("ids", maxBatch, "100"),
		"pipeline":  most("commands", maxPipeline, "16"),
		"processes": most("processes", maxProcesses, "4"),
		"margin":    {"number of ids", "whole numbers from 0 are allowed", "100000"},
		"duration":  {"duration", "up to 1h", "30s"},
		"color":     {"mode", failure.List(colourModes, "and") + " are allowed", "never"},
		"spares":    {"list of workers", "numbers with commas between them are allowed", "507,1007"},
	}[f.Name]; ok {
		return known[0], known[1], known[2]
	}
	if found := flagged(f.Name); len(found) > 0 {
		s := found[0]
		switch {
		case s.Allowed == "":
			allowed = "leave it out for its default"
		case s.Noun == "duration":
			allowed = s.Allowed
		default:
			allowed = s.Allowed + " are allowed"
		}
		return cmp.Or(s.Noun, s.Key), allowed, cmp.Or(s.Example, s.Default)
	}
	if f.Value.Type() == "bool" {
		return "", "true and false are allowed", "true"
	}
	return "value of type " + f.Value.Type(), "leave it out for its default", f.DefValue
}
