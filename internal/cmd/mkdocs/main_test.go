package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
)

const root = "../../.."

func TestUpToDate(t *testing.T) {
	t.Chdir(root)
	qt.Check(t, qt.IsNil(run([]string{"-check"}, os.Stderr)))
}

func TestEveryReasonHasText(t *testing.T) {
	codes := map[string]bool{}
	for _, r := range kallscope.Reasons() {
		info := r.Info()
		qt.Check(t, qt.Not(qt.Equals(info.Code, "")), qt.Commentf("reason %d", r))
		qt.Check(t, qt.Not(qt.Equals(info.Text, "")), qt.Commentf("reason %s", r))
		qt.Check(t, qt.IsFalse(codes[info.Code]), qt.Commentf("code %s twice", info.Code))
		for _, s := range []string{info.Text, info.Remedy, info.Reference} {
			qt.Check(t, qt.IsFalse(strings.HasSuffix(s, ".")), qt.Commentf("%q", s))
		}
		codes[info.Code] = true
	}
}

func TestWriteAndCompare(t *testing.T) {
	dir := t.TempDir()
	want := map[string][]byte{"reasons.md": []byte("a"), "commands/kallscope.md": []byte("b")}
	old := filepath.Join(dir, "commands", "gone.md")

	qt.Assert(t, qt.ErrorMatches(compare(dir, want), `.*/commands/kallscope.md, .*/reasons.md: not up to date; run make docs`))
	qt.Assert(t, qt.IsNil(write(dir, want)))
	qt.Assert(t, qt.IsNil(compare(dir, want)))
	qt.Assert(t, qt.IsNil(os.WriteFile(old, nil, 0o600)))
	qt.Assert(t, qt.ErrorMatches(compare(dir, want), `.*/commands/gone.md: not up to date.*`))
	qt.Assert(t, qt.IsNil(write(dir, want)))
	qt.Assert(t, qt.IsNil(compare(dir, want)))
}

func TestPage(t *testing.T) {
	const help = "Do things.\n\nAvailable Commands:\n  build  Build it\n  help   Help\n\nFlags:\n  -h\n"
	qt.Check(t, qt.Equals(string(page([]string{"addrs"}, help)), "# kallscope addrs\n\n"+generated+
		"\n\n```\n"+strings.TrimSpace(help)+"\n```\n\n* [kallscope-addrs-build](kallscope-addrs-build.md)\n"))
}
