package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

// cases make every line red for real. Each starts its own servers.
var cases = map[string]func(*doctor){}

// command makes the test's binary the command firn, see [doctor.command].
const command = "FIRN_IS_THE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(command) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	m.Run()
}

// TestEachLineWasMadeRed runs firn doctor in all cases, and then compares what it printed with the source: a text of a
// finding that no case has shown is an error, unless [elsewhere] says why.
func TestEachLineWasMadeRed(t *testing.T) {
	all := &transcript{}
	ran := 0
	overVersions(t, all)
	t.Run("case", func(t *testing.T) {
		for name, run := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(&doctor{T: t, all: all})
				all.mu.Lock()
				defer all.mu.Unlock()
				ran++
			})
		}
	})
	switch chosen := flag.Lookup("test.run").Value.String(); {
	case t.Failed():
		return // what the cases lack would be reported as missing
	case ran < len(cases) && strings.Contains(chosen, "/"):
		t.Logf("only the cases of -run %s: which lines were made red is not compared", chosen)
		return
	case ran < len(cases):
		t.Fatalf("%d of %d cases ran to their end", ran, len(cases))
	}
	listed := map[string]bool{}
	for _, text := range texts(t) {
		shown := slices.ContainsFunc(all.findings, text.in)
		by, ok := elsewhere[text.literal]
		listed[text.literal] = true
		switch due := !ok || by.real != nil && by.real(); {
		case !shown && due:
			t.Errorf("%s: no case has firn doctor say %q: add one", text.at, text.literal)
		case shown && !due:
			t.Errorf("%s: a case shows %q: remove it from elsewhere", text.at, text.literal)
		}
	}
	for literal, by := range elsewhere {
		if !listed[literal] {
			t.Errorf("elsewhere has %q, which no finding says", literal)
		}
		if !by.asks(t, literal) {
			t.Errorf("%s: %s does not look for words of %q", by.file, by.test, literal)
		}
	}
	for _, subject := range []string{"store", "server", "latency", "clock", "write", "pool"} { // of questions that fail
		if !slices.Contains(all.bad, subject) {
			t.Errorf("no case has firn doctor call %s bad", subject)
		}
	}
}

// A transcript has all findings that were printed, each as one text.
type transcript struct {
	mu       sync.Mutex
	findings []string
	bad      []string // their subjects
}

func (a *transcript) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.findings = append(a.findings, text)
}

// A doctor is firn doctor in one case.
type doctor struct {
	*testing.T
	all    *transcript
	within []string // a command that runs firn with the arguments after its own; without one, firn runs in this process
}

// A finding is one that firn doctor printed.
type finding struct{ Subject, Verdict, Says, Advice string }

func (f finding) String() string {
	return f.Verdict + " " + f.Subject + ": " + f.Says + " → " + f.Advice
}

// examine runs firn doctor. Its status must fit what it found.
func (d *doctor) examine(args ...string) (findings []finding, complaint string) {
	d.Helper()
	var out, errs bytes.Buffer
	status := d.run(append([]string{"doctor", "--json"}, args...), &out, &errs)
	var report struct{ Findings []finding }
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			d.Fatalf("firn doctor %q: %v in %s", args, err, out.String())
		}
	}
	bad := slices.ContainsFunc(report.Findings, func(f finding) bool { return f.Verdict == "bad" })
	if want := bad || out.Len() == 0; (status == 1) != want || status > 1 {
		d.Errorf("firn doctor %q exits with %d: %s%s", args, status, out.String(), errs.String())
	}
	if strings.Contains(out.String()+errs.String(), password) {
		d.Errorf("firn doctor %q shows the password: %s%s", args, out.String(), errs.String())
	}
	for _, f := range report.Findings {
		if (f.Verdict == "good") != (f.Advice == "") && f.Says == "" {
			d.Errorf("%v", f)
		}
		d.all.add(f.Says + " → " + f.Advice)
		if f.Verdict == "bad" {
			d.all.mu.Lock()
			d.all.bad = append(d.all.bad, f.Subject)
			d.all.mu.Unlock()
		}
	}
	d.all.add(errs.String())
	return report.Findings, errs.String()
}

// run runs firn. It returns its status.
func (d *doctor) run(args []string, out, errs io.Writer) int {
	d.Helper()
	if d.within == nil {
		return cli.Main(args, strings.NewReader(""), out, errs)
	}
	cmd := exec.Command(d.within[0], append(d.within[1:], args...)...)
	cmd.Env = append(cmd.Environ(), command+"=1")
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		d.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

const password = "geheim"

// finds runs firn doctor until it finds words with a verdict about a subject: servers apply settings with a delay.
func (d *doctor) finds(verdict, subject, words string, args ...string) {
	d.Helper()
	var last []finding
	var complaint string
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		last, complaint = d.examine(args...)
		if slices.ContainsFunc(last, func(f finding) bool {
			return f.Verdict == verdict && f.Subject == subject && strings.Contains(f.Says+" → "+f.Advice, words)
		}) {
			return
		}
	}
	d.Errorf("firn doctor %q does not find %s %s: %s, but\n%v\n%s", args, verdict, subject, words, last, complaint)
}

// refuses runs firn doctor on a store that cannot be opened.
func (d *doctor) refuses(words string, args ...string) {
	d.Helper()
	if findings, complaint := d.examine(args...); len(findings) > 0 || !strings.Contains(complaint, words) {
		d.Errorf("firn doctor %q does not refuse with %q: %v %s", args, words, findings, complaint)
	}
}

// until waits for a condition that only needs time.
func (d *doctor) until(what string, done func() bool) {
	d.Helper()
	for deadline := time.Now().Add(40 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.Fatalf("timed out waiting for %s", what)
		}
	}
}

func (d *doctor) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// sources are the functions that make findings, by their files.
var sources = map[string][]string{
	"../../internal/cli/doctor.go":                {"examineListeners", "examineVariables", "timesAhead", "unknownPool"},
	"../../internal/issuing/doctor.go":            {"examineRoundTrip", "examineOffset", "failsIn", "examinePool", "ExamineWrites", "claimsAhead", "workersLeft"},
	"../../internal/issuing/examine.go":           {"examinePools", "examineCounter"},
	"../../internal/server/descriptors.go":        {"examineDescriptors"},
	"../../internal/server/tls.go":                {"ends"},
	"../../internal/server/tls_examine.go":        {"examineChain", "examineAuthorities"},
	"../../internal/settings/examine.go":          {"Examine", "examineNames"},
	"../../internal/storeurl/storeurl.go":         {"examineMemory"},
	"../../internal/storeurl/filesystem_linux.go": {"", "examineFile", "mountedWith", "onFileSystem"},
	"../../../../redisstore/examine.go":           {"", "persists", "evicts", "replicates"},
	"../../../../store/sqlstore/examine.go":       {"findings", "finding"},
	"../../../../store/sqlstore/mysql.go":         {"examineMySQL", "mysqlReplicas"},
	"../../../../store/sqlstore/postgres.go":      {"examinePostgres", "forgets"},
	"../../../../etcdstore/examine.go":            {"", "examine", "examineVersion", "named"},
	"../../../../zkstore/examine.go":              {"ensemble"},
}

// passedOn are files that make findings of texts of others.
var passedOn = []string{"../../internal/issuing/storeview.go", "../../../../store/backend/judge.go"}

func TestEachFileThatMakesFindingsIsASource(t *testing.T) {
	const root = "../../../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, root+"/internal/sim/"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("store.Finding{")) {
			return err
		}
		name := strings.Replace(path, root+"/cmd/firn/", "../../", 1)
		if sources[name] == nil && !slices.Contains(passedOn, name) {
			t.Errorf("%s makes findings: add it to sources, with the functions that have their texts", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asks reports whether the test has a string with the first three words of a text.
func (p played) asks(t *testing.T, literal string) (asks bool) {
	parsed, err := parser.ParseFile(token.NewFileSet(), p.file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	fragments := verb.Split(literal, -1)
	words := strings.Fields(fragments[len(fragments)-1])
	begins := strings.Join(words[:min(3, len(words))], " ")
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == p.test {
			ast.Inspect(f, func(n ast.Node) bool {
				said, ok := n.(*ast.BasicLit)
				asks = asks || ok && strings.Contains(said.Value, begins)
				return true
			})
		}
	}
	return asks
}

// A text is a string in the source of a finding.
type text struct {
	literal, at string
	fragments   []string // what is between the verbs of a format
}

func (x text) in(finding string) bool {
	return !slices.ContainsFunc(x.fragments, func(f string) bool { return !strings.Contains(finding, f) })
}

var verb = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-zA-Z]`)

// texts returns the strings of at least two words in the sources. Single ones are names of settings.
func texts(t *testing.T) (all []text) {
	files := token.NewFileSet()
	for file, names := range sources {
		parsed, err := parser.ParseFile(files, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, decl := range parsed.Decls {
			name := "" // of constants and variables
			if f, ok := decl.(*ast.FuncDecl); ok {
				name = f.Name.Name
			}
			if !slices.Contains(names, name) {
				continue
			}
			found[name] = true
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Errorf" { // no finding
						return false
					}
				}
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(strings.TrimSpace(value), " ") {
					return true
				}
				x := text{literal: value, at: files.Position(literal.Pos()).String()}
				for _, fragment := range verb.Split(value, -1) {
					if strings.TrimSpace(fragment) != "" {
						x.fragments = append(x.fragments, fragment)
					}
				}
				all = append(all, x)
				return true
			})
		}
		for _, name := range names {
			if !found[name] {
				t.Errorf("%s has no function %q", file, name)
			}
		}
	}
	return all
}
