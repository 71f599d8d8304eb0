package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// tool runs the command line in this process.
func tool(args ...string) (stdout, stderr string, status int) {
	var out, speech bytes.Buffer
	status = run(args, stdio{strings.NewReader(""), &out, &speech})
	return out.String(), speech.String(), status
}

// TestUsage: what is wrong on the command line is said in one line that names
// the way on, with status 2 and nothing on standard output.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"nonsense"}, `unknown command "nonsense".*`},
		{[]string{"list"}, `no pattern given; '\*' stands for all functions`},
		{[]string{"list", "--nonsense"}, `unknown flag: --nonsense; see 'kallscope list --help'`},
		{[]string{"list", "tcp_["}, `parse pattern "tcp_\[": column 5: .*`},
		{[]string{"list", "a", "--skipped=nonsense"}, `reason "nonsense": not found; use one of data-symbol, .*`},
		{[]string{"list", "a", "--duplicates", "some"}, `duplicates "some": not found; use all, skip, first or error`},
		{[]string{"list", "a", "-f", "/no/such/file"}, `patterns: open /no/such/file: no such file or directory`},
		{[]string{"list", "a", "-f", "/dev/null"}, `patterns: /dev/null has none`},
		{[]string{"list", "a", "-f", "/"}, `.*is a directory`},
		{[]string{"list", "-f", "-"}, `patterns: standard input has none`},
		{[]string{"count", "a", "--sort", "size"}, `count: --sort "size": use calls, name or address`},
		{[]string{"count", "a", "-d", "NaN"}, `count: -d NaN: use 0.01 to 1e\+08 seconds`},
		{[]string{"count", "a", "-d", "-1"}, `count: -d -1: .*`},
		{[]string{"count", "a", "-i", "1e-9"}, `count: -i 1e-09: .*`},
		{[]string{"count", "a", "-d", "1e300"}, `count: -d 1e\+300: .*`},
		{[]string{"count", "a", "-d", "x"}, `invalid argument "x" for "-d, --duration" flag: .*; see 'kallscope count --help'`},
		{[]string{"count", "a", "--top", "-1"}, `count: --top must not be negative`},
		{[]string{"count", "a", "-d", "1", "--", "true"}, `count: -d and a command both say when to stop; leave one out`},
		{[]string{"count", "a", "--command-only"}, `count: --command-only needs a command behind --`},
		{[]string{"count", "a", "-p", "1", "--command-only", "--", "true"}, `count: -p and --command-only both choose a process; leave one out`},
		{[]string{"count", "a", "-p", "999999999"}, `count: -p 999999999: no such process`},
		{[]string{"count", "a", "-p", "0"}, `count: -p 0 is no process`},
		{[]string{"count", "a", "--"}, `count: no command behind --`},
		{[]string{"list", "a", "--skipped", "no-site"}, `list: no-site is a reason: write --skipped=no-site`},
		{[]string{"count", "a", "--kernel", "k.ksnap"}, `count: --kernel is for list and resolve; calls are counted in the running kernel`},
		{[]string{"list", "a", "--kernel", "/no/such"}, `kernel: stat /no/such: no such file or directory`},
		{[]string{"snapshot", "a"}, `unknown command "a" for "kallscope snapshot"`},
		{[]string{"count", "a", "--mechanism", "uprobe"}, `mechanism "uprobe": not found; use one of auto, kprobe.multi, kretprobe.multi, .*`},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			out, speech, status := tool(test.args...)
			qt.Assert(t, qt.Equals(status, exitError))
			qt.Assert(t, qt.Equals(out, ""))
			qt.Assert(t, qt.Matches(strings.TrimSuffix(speech, "\n"), "kallscope: "+test.want))
		})
	}
}
