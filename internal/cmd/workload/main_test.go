//go:build linux

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// The children that forks starts are this test binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-getppid" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-getppid 0", `^pid \d+ getppid 0\n$`},
		{"-getppid 10 -forks 2 -net 3", `^pid \d+ getppid 10 forks 2 net 3\n$`},
		{"-reads 5 main.go", `^pid \d+ reads 5\n$`},
		{"-d 30ms", `^pid \d+ getppid \d+00 reads \d+00 forks [1-9]\d* tcp [1-9]\d* udp [1-9]\d*\n$`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs strings.Builder
			qt.Assert(t, qt.IsNil(run(strings.Fields(tt.args), &out, &errs)))
			qt.Check(t, qt.IsTrue(regexp.MustCompile(tt.want).MatchString(out.String())), qt.Commentf("%q", out.String()))
			qt.Check(t, qt.Equals(errs.String(), ""))
		})
	}
}

func TestRunWrong(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "nothing to do.*"},
		{"-getppid 1 FILE", "-reads takes one FILE.*"},
		{"-reads 1", "-reads takes one FILE.*"},
		{"-reads 1 /nonexistent", "reads: open /nonexistent: .*"},
		{"-reads 1 /dev/null", "reads: pread64 0 of /dev/null: unexpected EOF"},
		{"-nonsense", ".*not defined: -nonsense"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errs strings.Builder
			qt.Check(t, qt.ErrorMatches(run(strings.Fields(tt.args), &out, &errs), tt.want))
			qt.Check(t, qt.Equals(out.String(), ""))
		})
	}
}
