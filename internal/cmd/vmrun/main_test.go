package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/vm"
	"github.com/kallscope/kallscope/internal/vm/vmtest"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{
		"-kernel", "7.3", "-modules", "kvm,veth", "-modules=xor", "-mem", "700", "-cpus", "2", "-timeout", "9s",
		"-append", "quiet a=b", "-sysctl", "kernel.kptr_restrict=2", "-icount", "-no-mount", "tracefs", "-uid", "7",
		"-env", "A=b", "-copy", "/h:/g", "-copy", "/same", "-fetch", "/g:h", "-v", "--", "prog", "-x", "--", "y",
	}, &bytes.Buffer{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(o.kernel, "7.3"))
	qt.Assert(t, qt.DeepEquals(o.program, []string{"prog", "-x", "--", "y"}))
	qt.Assert(t, qt.DeepEquals(o.modules, []string{"kvm", "veth", "xor"}))
	qt.Assert(t, qt.DeepEquals(o.params, []string{"quiet", "a=b"}))
	qt.Assert(t, qt.DeepEquals(o.sysctl, map[string]string{"kernel.kptr_restrict": "2"}))
	qt.Assert(t, qt.DeepEquals(o.noMount, []string{"tracefs"}))
	qt.Assert(t, qt.DeepEquals(o.copy, map[string]string{"/g": "/h", "/same": "/same"}))
	qt.Assert(t, qt.DeepEquals(o.fetch, map[string]string{"/g": "h"}))
	qt.Assert(t, qt.Equals(o.memory+o.cpus+o.uid, 709))
	qt.Assert(t, qt.IsTrue(o.icount && o.verbose))
	qt.Assert(t, qt.Equals(o.timeout, 9*time.Second))
}

func TestRunUsage(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-h"}, 0, "usage: vmrun"},
		{nil, exitFailed, "vmrun: no program given"},
		{[]string{"-no-such"}, exitFailed, "flag provided but not defined"},
		{[]string{"-sysctl", "x", "p"}, exitFailed, "want A=B"},
		{[]string{"-kernel", "4.4", "p"}, exitFailed, `kernel "4.4": not one of 5.10`},
	} {
		var stderr bytes.Buffer
		qt.Check(t, qt.Equals(run(tc.args, streams{err: &stderr}), tc.status))
		qt.Check(t, qt.StringContains(stderr.String(), tc.want))
	}
}

func TestTestTimeout(t *testing.T) {
	for arg, want := range map[string]time.Duration{
		"-test.timeout=10m0s": 0, // the go command's default
		"-test.timeout=20m0s": 20*time.Minute + bootTime,
		"-test.timeout=0s":    0,
		"-test.v=true":        0,
		"other":               0,
		"":                    0,
	} {
		qt.Check(t, qt.Equals(testTimeout([]string{arg}), want), qt.Commentf("%s", arg))
	}
}

func TestAddTestFiles(t *testing.T) {
	wd := t.TempDir()
	testdata := filepath.Join(wd, "testdata")
	qt.Assert(t, qt.IsNil(os.Mkdir(testdata, 0o755)))
	cmd := &vm.Cmd{
		Args: []string{
			"x.test", "-test.testlogfile=/b/testlog.txt", "-test.coverprofile=cover.out", "--test.cpuprofile=c",
			"-test.gocoverdir=/cov", "-test.outputdir=out", "-test.run=X", "name",
		},
		Dir: wd, Files: map[string]string{}, FetchOptional: map[string]string{},
	}
	addTestFiles(cmd)
	qt.Assert(t, qt.DeepEquals(cmd.Files, map[string]string{testdata: testdata, "/cov": "/cov"}))
	cover, cpu := filepath.Join(wd, "out", "cover.out"), filepath.Join(wd, "out", "c")
	qt.Assert(t, qt.DeepEquals(cmd.FetchOptional, map[string]string{
		"/b/testlog.txt": "/b/testlog.txt", cover: cover, cpu: cpu, "/cov": "/cov",
	}))
}

func TestEnvironment(t *testing.T) {
	t.Setenv("PASSED", "on")
	got := environment(options{env: []string{"A=b", "PASSED"}}, []string{"KALLSCOPE_X=1", "GODEBUG=y", "HOME=/h", "NO_COLOR=1", "NO_COLORS=1"})
	qt.Assert(t, qt.DeepEquals(got, append(vm.DefaultEnv(0), "KALLSCOPE_X=1", "GODEBUG=y", "NO_COLOR=1", "A=b", "PASSED=on")))
}

// TestGoTest runs go test -exec vmrun on a module of its own, with a test that
// passes, one that skips and one that fails.
func TestGoTest(t *testing.T) {
	image := vmtest.Kernel(t, "6.12").Image
	vmrun := vmtest.Build(t, ".")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.org/sample\n\ngo 1.26\n",
		"sample.go":      "package sample\n\nfunc Two() int { return 2 }\n",
		"sample_test.go": sampleTest,
		"testdata/in":    "input",
	} {
		file := filepath.Join(dir, name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(file), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
	}
	cmd := exec.Command("go", "test", "-exec", vmrun+" -kernel "+image, "-v", "-coverprofile=cover.out", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "KALLSCOPE_SAMPLE=yes")
	out, err := cmd.CombinedOutput()
	qt.Assert(t, qt.ErrorMatches(err, "exit status 1"), qt.Commentf("%s", out))
	for _, want := range []string{"PASS: TestPass", "SKIP: TestSkip", "FAIL: TestFail", "coverage: 100.0%"} {
		qt.Check(t, qt.StringContains(string(out), want))
	}
	cover, err := os.ReadFile(filepath.Join(dir, "cover.out"))
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	qt.Assert(t, qt.IsTrue(strings.HasPrefix(string(cover), "mode: set\nexample.org/sample/sample.go:3.")))
}

const sampleTest = `package sample

import (
	"os"
	"testing"
)

func TestPass(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/tracing/trace"); err != nil || os.Getuid() != 0 || os.Getenv("KALLSCOPE_SAMPLE") != "yes" {
		t.Fatal(err, os.Getuid(), os.Environ())
	}
	if in, err := os.ReadFile("testdata/in"); string(in) != "input" || Two() != 2 {
		t.Fatal(string(in), err)
	}
}

func TestSkip(t *testing.T) { t.Skip("because") }

func TestFail(t *testing.T) { t.Fail() }
`
