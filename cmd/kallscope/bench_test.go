package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// bench runs kallscope bench resolve on this machine's own symbols.
func bench(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	if _, err := os.Stat("/proc/kallsyms"); err != nil {
		t.Skip(err)
	}
	var stdout, stderr bytes.Buffer
	status = run(append([]string{"bench", "resolve"}, args...), stdio{nil, &stdout, &stderr})
	return status, stdout.String(), stderr.String()
}

func TestBenchResolve(t *testing.T) {
	status, out, errs := bench(t, "-m", "30,100", "-n", "1k", "--rounds", "1")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", errs))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	qt.Assert(t, qt.HasLen(lines, 1+2*(2+7)), qt.Commentf("%s", out))
	qt.Check(t, qt.DeepEquals(strings.Fields(lines[0])[:4], []string{"WANTED", "SYMBOLS", "METHOD", "TIME"}))
	qt.Check(t, qt.DeepEquals(strings.Fields(lines[1])[:3], []string{"30", "1,000", "read"}))
	qt.Check(t, qt.StringContains(lines[3], "linear"))
	qt.Check(t, qt.StringContains(lines[3], " of 10"))
}

func TestBenchResolveJSON(t *testing.T) {
	status, out, errs := bench(t, "-m", "50", "-n", "2000", "--rounds", "1", "--method", "linear,product", "--json")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", errs))
	var names []string
	for line := range strings.Lines(out) {
		var r benchResolveJSON
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(line), &r)))
		qt.Check(t, qt.Equals(r.Schema, "kallscope.bench.resolve/1"))
		qt.Check(t, qt.DeepEquals([]int{r.Wanted, r.Symbols}, []int{50, 2000}))
		qt.Check(t, qt.IsTrue(r.Seconds > 0))
		qt.Check(t, qt.Equals(r.Scaled, r.Floor == "read" || r.Method == "linear"))
		qt.Check(t, qt.Equals(r.Found == nil, r.Floor != ""))
		names = append(names, r.Floor+r.Method)
	}
	qt.Check(t, qt.DeepEquals(names, []string{"read", "parse", "linear", "product"}))
}

func TestBenchErrors(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--method=guess", `"guess" is none`},
		{"-m=0", `--wanted: "0" is no number`},
		{"-n=20M", `--symbols: "20M" is no number`},
		{"-n=-k", `"-k" is no number`},
		{"--rounds=0", "--rounds: at least 1"},
		{"extra", `"extra"`},
	} {
		status, out, errs := bench(t, test.args)
		qt.Check(t, qt.Equals(status, exitError), qt.Commentf("%s", test.args))
		qt.Check(t, qt.Equals(out, ""))
		qt.Check(t, qt.StringContains(errs, test.want))
	}
	var out, errs bytes.Buffer
	qt.Check(t, qt.Equals(run([]string{"bench", "guess"}, stdio{nil, &out, &errs}), exitError))
	qt.Check(t, qt.StringContains(errs.String(), `unknown benchmark "guess"`))
}

func TestParseCount(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "20k": 20_000, "2M": 2_000_000, "10M": maxCount, "all": 7} {
		n, err := parseCount(text, 7)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(n, want))
	}
	for _, text := range []string{"", "k", "1.5k", "-1", "10001k", "9223372036854775807k", "all "} {
		_, err := parseCount(text, 7)
		qt.Check(t, qt.IsNotNil(err), qt.Commentf("%q", text))
	}
}

func TestThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		21300 * time.Nanosecond: "0.0213 ms", 41234 * time.Microsecond: "41.2 ms",
		999600 * time.Microsecond: "1 s", 75 * time.Second: "75 s", 1234567 * time.Millisecond: "1235 s",
	} {
		qt.Check(t, qt.Equals(threeDigits(d), want))
	}
}
