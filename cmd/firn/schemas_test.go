package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// validate runs a validator, which is a library for Python.
func validate(t *testing.T, validator string, args ...string) {
	t.Helper()
	installed(t, "clients-python/"+validator, validator)
	t.Setenv("PYTHONPATH", installed(t, "clients-python", validator))
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"-m", validator}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", validator, strings.Join(args, " "), err, out)
	}
}

// TestFilesForOtherProgramsMatchTheirSchemas checks the files that Compose and GitHub read.
func TestFilesForOtherProgramsMatchTheirSchemas(t *testing.T) {
	for schema, pattern := range map[string]string{
		"compose-spec":        "deploy/compose*.yaml",
		"github-workflows":    ".github/workflows/*.yml",
		"github-issue-forms":  ".github/ISSUE_TEMPLATE/[^c]*.yml", // not config.yml
		"github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
	} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(files), err)
			continue
		}
		validate(t, "check_jsonschema", append([]string{"--builtin-schema", "vendor." + schema}, files...)...)
	}
}
