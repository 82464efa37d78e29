package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A snippet is a code block in a document.
type snippet struct{ at, language, text string }

// snippets returns the code blocks under a heading of a document, up to the next heading of the
// same or a higher level.
func snippets(t *testing.T, document, heading string) []snippet {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", document))
	if err != nil {
		t.Fatal(err)
	}
	var found []snippet
	var inside, open bool
	level := strings.Index(heading, " ")
	for line := range strings.Lines(string(text)) {
		fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		hashes := len(line) - len(strings.TrimLeft(line, "#"))
		switch {
		case isFence && !open:
			open = true
			if inside {
				found = append(found, snippet{document + ", " + heading, fence, ""})
			}
		case isFence:
			open = false
		case open && inside:
			found[len(found)-1].text += line
		case !open && hashes > 0 && strings.HasPrefix(line[hashes:], " ") && hashes <= level:
			inside = strings.TrimSpace(line) == heading
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no code under %q", document, heading)
	}
	return found
}

// howToRun matches the first line of a program in a document: its file, the command that runs it,
// and, after a comma, a remark.
var howToRun = regexp.MustCompile(`^(?:<\?php )?(?://|#) ([\w/]+\.\w+): ([^,\n]+)`)

// A reader runs the commands and programs of documents, as in a checkout of this repository.
type reader struct {
	t       *testing.T
	folder  string            // for the programs' files
	root    string            // of the repository
	clean   []string          // the environment
	replace *strings.Replacer // replaces the addresses in the documents
}

// newReader returns a reader with the tools that tests use, and with the command as bin/firn and in
// PATH.
func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	firn, err := exec.LookPath("firn")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, folder: t.TempDir(), root: root}
	bin := filepath.Join(r.folder, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"bin/firn":     firn,
		"bin/python3":  "/usr/bin/python3", // Debian's Python, which finds Debian's packages
		"bin/grpcurl":  filepath.Join(root, ".tools/grpcurl-v*"),
		"proto":        filepath.Join(root, "proto"),
		"node_modules": filepath.Join(root, ".tools/clients/node_modules"),
		"lib":          filepath.Join(root, ".tools/clients-java"),
	} {
		if there, err := filepath.Glob(path); err == nil && len(there) > 0 {
			if err := os.Symlink(there[len(there)-1], filepath.Join(r.folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, variable := range os.Environ() {
		switch name, _, _ := strings.Cut(variable, "="); {
		case name == "PATH", name == "GOWORK", name == "XDG_STATE_HOME", strings.HasPrefix(name, "FIRN_"), strings.HasSuffix(strings.ToLower(name), "_proxy"):
		default:
			r.clean = append(r.clean, variable)
		}
	}
	r.clean = append(r.clean, "PATH="+bin+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+r.folder, "NO_PROXY=127.0.0.1")
	return r
}

// serve runs a server's command line until the test ends. The environment sets free ports, because
// the default ports may be in use.
func (r *reader) serve(line string) {
	r.t.Helper()
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = r.root, append(r.clean, "FIRN_HTTP=127.0.0.1:0", "FIRN_RESP=127.0.0.1:0", "FIRN_GRPC=127.0.0.1:0")
	http, resp, grpc := serveUntilTheEnd(r.t, cmd)
	r.replace = addresses(http, resp, grpc)
}

// addresses replaces the ports in documents with those of a server.
func addresses(http, resp, grpc string) *strings.Replacer {
	return strings.NewReplacer("127.0.0.1:7070", "127.0.0.1:"+http, "127.0.0.1:7071", "127.0.0.1:"+resp, "127.0.0.1:7072", "127.0.0.1:"+grpc,
		"-p 7071", "-p "+resp, "port=7071", "port="+resp, "port: 7071", "port: "+resp)
}

// types runs a snippet and returns its output. A snippet is shell commands, or a program with
// howToRun as its first line.
func (r *reader) types(s snippet) string {
	r.t.Helper()
	text := s.text
	if r.replace != nil {
		text = r.replace.Replace(text)
	}
	folder := r.folder
	environment := r.clean
	m := howToRun.FindStringSubmatch(text)
	switch {
	case m == nil && s.language != "sh":
		r.t.Fatalf("%s: the first line of the %s does not say how it is run:\n%s", s.at, s.language, text)
	case m == nil && strings.Contains(text, "go run ./"):
		folder = r.root
	case m == nil:
	case s.language == "go":
		// Run it as if it were in the checkout, without writing there.
		folder = r.root
		environment = append(environment, "GOFLAGS=-overlay="+r.overlay(m[1], text))
		text = m[2]
	default:
		r.save(m[1], text)
		text = m[2]
	}
	program, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if strings.Contains(program, "=") {
		program = "sh" // the line sets a variable
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), clientTimeout)
	defer cancel()
	found := exec.CommandContext(ctx, "sh", "-c", "command -v "+program)
	found.Dir, found.Env = folder, environment
	needClient(r.t, found.Run() == nil, program)
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", text)
	cmd.Dir, cmd.Env = folder, environment
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		r.t.Errorf("%s: %v: %s%s\n%s", s.at, err, out, &said, text)
	}
	return string(out)
}

// save writes a file and returns its path.
func (r *reader) save(name, text string) string {
	r.t.Helper()
	path := filepath.Join(r.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// overlay returns an overlay file for the go command that adds a file to the checkout.
func (r *reader) overlay(name, text string) string {
	r.t.Helper()
	return r.save("overlay.json", `{"Replace": {"`+filepath.Join(r.root, name)+`": "`+r.save(name, text)+`"}}`)
}
