package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// writeReference writes configuration.md and firn.schema.json into a folder, from what package settings declares.
func writeReference(folder string) error {
	for name, content := range reference() {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil { //nolint:gosec // everyone may read documents
			return err
		}
	}
	return nil
}

// reference returns the documents about the settings, by the names of their files.
func reference() map[string]string {
	return map[string]string{"configuration.md": page(), "firn.schema.json": string(settings.Schema())}
}

// page returns configuration.md.
func page() string {
	var b strings.Builder
	b.WriteString(`<!-- Made by make reference from the declarations in cmd/firn/internal/settings: change them there. -->

# Settings of the server

This page lists every setting of the configuration file. [server.md](server.md) explains the file, and [kinds.md](kinds.md) which kind to use.
A value in **default** applies if the setting is absent or empty. A setting with a **flag** is also one of ` + "`firn next`" + `, under that name.

Editors complete and check the settings by [firn.schema.json](firn.schema.json), which ` + "`firn doctor --schema`" + ` prints too. With the YAML language
server, begin the file with this line, or the schema's address instead of the file:

` + "```yaml\n# yaml-language-server: $schema=firn.schema.json\n```" + `
`)
	sections := settings.Sections()
	for _, s := range sections {
		if s.Key == "" {
			b.WriteString("\n## The file\n\n")
		} else if s.Key != "veil" {
			fmt.Fprintf(&b, "\n## %s\n\n", cell(fmt.Sprintf(s.Key+": "+s.Form, "…")))
		} else {
			namespaces(&b)
			b.WriteString("\n### `veil: {…}`\n\nGive `key_file` or `key_env`. Keys are written as in [cli.md](cli.md#veils).\n\n")
		}
		table(&b, s.Settings, nil)
	}
	requests(&b)
	return b.String()
}

// requests writes which namespaces answer which requests.
func requests(b *strings.Builder) {
	var protocols []string
	for _, r := range settings.Requests {
		if !slices.Contains(protocols, r.Protocol) {
			protocols = append(protocols, r.Protocol)
		}
	}
	row := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	b.WriteString("\n## Which requests a namespace answers\n\nIt depends on the kind, and on three settings. First the requests, by what they ask for:\n\n")
	row(append([]string{"asks for"}, protocols...))
	row(slices.Repeat([]string{"---"}, len(protocols)+1))
	for _, v := range settings.Verbs() {
		cells := []string{v.String()}
		for _, p := range protocols {
			var forms []string
			for _, r := range settings.Requests {
				if r.Protocol == p && r.Verb == v {
					forms = append(forms, cell(r.Form))
				}
			}
			cells = append(cells, strings.Join(forms, ", "))
		}
		row(cells)
	}
	b.WriteString("\nThen the namespaces. All others get an error and no id. It says what their ids are; Leaf's has its code in the header " +
		"`Firn-Error` instead. " +
		"A test sends each of these requests to a server, for each of these namespaces.\n\n")
	header := []string{"namespace"}
	for _, v := range settings.Verbs() {
		header = append(header, v.String())
	}
	row(header)
	row(slices.Repeat([]string{"---"}, len(header)))
	for _, s := range settings.Shapes() {
		cells := []string{s.Name}
		for _, v := range settings.Verbs() {
			answers := "yes"
			if s.Lacks(v) != "" {
				answers = "no"
			}
			cells = append(cells, answers)
		}
		row(cells)
	}
}

func namespaces(b *strings.Builder) {
	b.WriteString("\n## `namespaces: {NAME: {…}}`\n\n| kind | settings beside `kind` | cannot change while the namespace is served |\n| --- | --- | --- |\n")
	for i, k := range settings.Kinds {
		name := cell(k.Name)
		if i == 0 {
			name += " (default)"
		}
		var all []string
		for _, s := range k.Settings() {
			all = append(all, cell(s.Key))
		}
		fixed := []string{}
		for _, key := range k.Fixed() {
			fixed = append(fixed, cell(key))
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, strings.Join(all, ", "), strings.Join(fixed, ", "))
	}
	b.WriteString("\nA setting that the kind does not have is an error. All namespaces of one `pool` have the same settings of the generator, from `layout` to `datacenter`.\n\n")
	table(b, settings.All(), func(s settings.Setting) string {
		var names []string
		for _, k := range settings.Kinds {
			if slices.ContainsFunc(k.Settings(), func(of settings.Setting) bool { return of.Key == s.Key }) {
				names = append(names, k.Name)
			}
		}
		if len(names) == 0 {
			return "all"
		}
		return strings.Join(names, ", ")
	})
}

// table writes settings; kinds returns the kinds that have one, and is nil where that is no question.
func table(b *strings.Builder, of []settings.Setting, kinds func(settings.Setting) string) {
	columns := []string{"setting", "default", "allowed", "example", "meaning"}
	if kinds != nil {
		columns = append(columns, "kinds", "flag")
	}
	row := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	row(columns)
	row(slices.Repeat([]string{"---"}, len(columns)))
	for _, s := range of {
		cells := []string{cell(s.Key), cmp.Or(cell(s.Default), s.Unset), s.Allowed, cell(s.Example), s.Help}
		if kinds != nil {
			flag := ""
			if s.Flag != "" {
				flag = cell("--" + s.Flag)
			}
			cells = append(cells, kinds(s), flag)
		}
		row(cells)
	}
}

// cell writes what is meant literally.
func cell(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
