package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// writeModule makes a module of the files and changes into it.
func writeModule(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(name), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(name, []byte(text), 0o600)))
	}
	t.Chdir(dir)
}

// gotest runs the command.
func gotest(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), args, &out)
	return out.String(), err
}

const testFile = `package p

import "testing"

func TestGood(t *testing.T) { t.Log("chatter") }
func TestSkip(t *testing.T) { t.Skip("needs a moon: full") }
func TestSkipToo(t *testing.T) { t.Run("sub", func(t *testing.T) { t.SkipNow() }) }
func FuzzIt(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }
`

func TestRunPasses(t *testing.T) {
	writeModule(t, map[string]string{"p/p_test.go": testFile, "q/q.go": "package q\n"})
	out, err := gotest(t, "run", "./...")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(out, `ok  \texample.org/m/p\t.*
skip\tneeds a moon: full: p.TestSkip
skip\tno reason given: p.TestSkipToo/sub
tests: 3 passed, 0 failed, 2 skipped
`))
}

func TestRunFails(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{
			"test", `func TestBad(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("no good") }) }`,
			`    p_test.go:3: no good
--- FAIL: TestBad/sub .*
--- FAIL: TestBad .*
FAIL
FAIL\texample.org/m/p\t.*
tests: 0 passed, 2 failed, 0 skipped
`,
		},
		{
			"panic", `func TestBad(t *testing.T) { t.Log("before"); panic("alas") }`,
			`(?s)    p_test.go:3: before
--- FAIL: TestBad .*panic: alas .*FAIL\texample.org/m/p\t.*tests: 0 passed, 1 failed, 0 skipped
`,
		},
		{
			"exit", `func TestBad(t *testing.T) { t.Log("before"); os.Exit(3) }`,
			`(?s)    p_test.go:3: before
.*FAIL\texample.org/m/p\t.*tests: 0 passed, 1 failed, 0 skipped
`,
		},
		{
			"build", "func TestBad(t *testing.T) { nonsense() }",
			`(?s).*undefined: nonsense.*FAIL\texample.org/m/p \[build failed\]
tests: 0 passed, 0 failed, 0 skipped
`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			imports := `import "testing"; `
			if strings.Contains(tt.file, "os.") {
				imports += `import "os"`
			}
			writeModule(t, map[string]string{"p/p_test.go": "package p\n" + imports + "\n" + tt.file + "\n"})
			out, err := gotest(t, "run", "./...")
			qt.Check(t, qt.ErrorIs(err, errFailed))
			qt.Check(t, qt.Matches(out, tt.want))
		})
	}
}

func TestFuzz(t *testing.T) {
	writeModule(t, map[string]string{"p/p_test.go": testFile})
	out, err := gotest(t, "fuzz", "-each", "20s", "-budget", "1s", "-p", "1")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(out, `1 targets, 1s each, 1 at a time
ok  \texample.org/m/p FuzzIt\t(execs: \d+, new interesting: \d+|no figures)
fuzz: 1 passed, 0 failed, 0 skipped
`))
}

func TestFuzzFails(t *testing.T) {
	bad := strings.Replace(testFile, "func(*testing.T, int) {}", `func(t *testing.T, _ int) { t.Error("no good") }`, 1)
	writeModule(t, map[string]string{"p/p_test.go": bad})
	out, err := gotest(t, "fuzz", "-each", "1s")
	qt.Check(t, qt.ErrorIs(err, errFailed))
	qt.Check(t, qt.Matches(out, `(?s).*FAIL\texample.org/m/p FuzzIt: exit status 1\n.*no good.*fuzz: 0 passed, 1 failed, 0 skipped\n`))
}

func TestTimeUp(t *testing.T) {
	const end = "fuzz: elapsed: 18s, execs: 10 (0/sec)\n--- FAIL: FuzzParse (18.06s)\n"
	qt.Check(t, qt.IsTrue(timeUp.MatchString(end+"    context deadline exceeded\nFAIL\nexit status 1\n")))
	qt.Check(t, qt.IsFalse(timeUp.MatchString(end+`    --- FAIL: FuzzParse (0.00s)
        parse_test.go:9: context deadline exceeded
    
    Failing input written to testdata/fuzz/FuzzParse/1
FAIL
`)))
}

func TestFuzzTime(t *testing.T) {
	f := fuzzFlags{each: 20 * time.Second, p: 2}
	qt.Check(t, qt.Equals(f.time(1000), 20*time.Second))
	f.budget = 100 * time.Second
	qt.Check(t, qt.Equals(f.time(10), 20*time.Second))
	qt.Check(t, qt.Equals(f.time(11), 18*time.Second))
	qt.Check(t, qt.Equals(f.time(1000), time.Second))
}

func TestFind(t *testing.T) {
	writeModule(t, map[string]string{
		"p/p_test.go":       testFile,
		"p/p_linux_test.go": "package p_test\n\nfunc TestMain() {}\nfunc TestKernel() {}\nfunc ExampleIt() {}\nfunc helper() {}\n",
	})
	kernel := func(file string) bool { return strings.HasSuffix(file, "_linux_test.go") }
	pkgs, err := find(t.Context(), []string{"./..."}, kernel, "Test", "Example")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(pkgs, 1))
	qt.Check(t, qt.Equals(pkgs[0].path, "example.org/m/p"))
	qt.Check(t, qt.Equals(exactly(pkgs[0].funcs), "^(TestKernel|ExampleIt)$"))
}

func TestCloseGuest(t *testing.T) {
	for _, tt := range []struct {
		tally
		broken bool
		want   string
	}{
		{tally{1, 0, 5}, false, ""},
		{tally{0, 0, 5}, false, "tests failed: kernel 6.1: everything was skipped"},
		{tally{5, 1, 0}, false, "tests failed"},
		{tally{5, 0, 0}, true, "tests failed"},
	} {
		var out strings.Builder
		r := newReport(&out)
		r.tally, r.broken = tt.tally, tt.broken
		err := r.closeGuest("6.1")
		if tt.want == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, tt.want))
		}
		qt.Check(t, qt.Equals(out.String(), "guest-6.1: "+tt.String()+"\n"))
	}
}

func TestWrong(t *testing.T) {
	writeModule(t, map[string]string{"p/p.go": "package p\n"})
	for _, tt := range []struct{ args, want string }{
		{"", "usage"},
		{"nonsense", "usage"},
		{"guest -nonsense", "gotest guest: flag .*; gotest without arguments shows the usage"},
		{"guest", "guest: no kernel tests .* in ./..."},
		{"fuzz", "fuzz: no targets in ./..."},
		{"fuzz ./nowhere", "(?s)go list .*"},
	} {
		_, err := gotest(t, strings.Fields(tt.args)...)
		qt.Check(t, qt.ErrorMatches(err, tt.want))
	}
}

func TestCancel(t *testing.T) {
	writeModule(t, map[string]string{"p/p_test.go": testFile})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	qt.Check(t, qt.ErrorIs(run(ctx, []string{"run", "./..."}, &strings.Builder{}), context.Canceled))
}
