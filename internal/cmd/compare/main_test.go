//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestParse(t *testing.T) {
	o, err := parse(nil, os.Stderr)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(o.patterns, []string{"tcp_*", "*"}))
	qt.Assert(t, qt.DeepEquals(o.tools, toolNames()))

	var stderr strings.Builder
	_, err = parse([]string{"-tools", "kallscope,ply"}, &stderr)
	qt.Assert(t, qt.ErrorMatches(err, `.*"ply": use kallscope, bpftrace, libbpf, floor`))
	_, err = parse([]string{"-rounds", "0"}, &stderr)
	qt.Assert(t, qt.ErrorMatches(err, "-rounds must be at least 1, .*"))
}

func TestReport(t *testing.T) {
	r := report{
		Command: "compare " + quote([]string{"-rounds", "3", "tcp_*"}), Kernel: "6.12", Emulator: "QEMU 7.2", Versions: []string{"bpftrace 0.17"},
		Rounds: 3, Patterns: []string{"tcp_*"},
		Samples: []sample{
			{Tool: "kallscope", Pattern: "tcp_*", Attach: 9, Enabled: 388},
			{Tool: "kallscope", Pattern: "tcp_*", Round: 1, Attach: 1, Stop: 0.5, RSS: 2048, Functions: 388},
			{Tool: "bpftrace", Pattern: "tcp_*", Round: 1, Attach: 2, Stop: 1, Functions: 381},
			{Tool: "bpftrace", Pattern: "tcp_*", Round: 2, Attach: 20, Stop: 2, Functions: 381},
			{Tool: "kallscope", Pattern: "tcp_*", Round: 2, Attach: 3, Stop: 0.6, RSS: 1024, Functions: 388},
			{Tool: "kallscope", Pattern: "tcp_*", Round: 3, Attach: 5, Stop: 0.7, RSS: 1024, Functions: 388},
			{Tool: "bpftrace", Pattern: "tcp_*", Round: 3, Attach: 6, Stop: 3, Functions: 381},
			{Tool: "kallscope", Pattern: "*", Round: 1, Attach: 100},
		},
	}
	var b strings.Builder
	qt.Assert(t, qt.IsNil(r.write(&b)))
	qt.Assert(t, qt.Equals(b.String(), `Linux 6.12, QEMU 7.2; bpftrace 0.17.
3 runs of each, in turn, in one boot; seconds.

	compare -rounds 3 'tcp_*'

| `+"`tcp_*`"+` | start → attached: median (min–max) | kallscope ÷ this | stop | peak RSS | functions | enabled_functions |
|---|--:|--:|--:|--:|--:|--:|
| kallscope | 3.00 (1.00–5.00) | – | 0.60 | 2.0 MiB | 388 | 388 |
| bpftrace | 6.00 (2.00–20.0) | 0.50 (0.15–0.83) | 2.00 | – | 381 | – |
`))
}

func TestAsleep(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	qt.Assert(t, qt.IsNil(cmd.Start()))
	waitAsleep(cmd.Process.Pid)
	qt.Check(t, qt.IsTrue(asleep(cmd.Process.Pid)))
	qt.Check(t, qt.IsTrue(peakRSS(cmd.Process.Pid) > 0))
	qt.Assert(t, qt.IsNil(cmd.Process.Kill()))
	_ = cmd.Wait()
	qt.Check(t, qt.IsFalse(asleep(cmd.Process.Pid)))
	qt.Check(t, qt.Equals(peakRSS(cmd.Process.Pid), 0))
}

func TestMedian(t *testing.T) {
	qt.Check(t, qt.Equals(median(nil), 0))
	qt.Check(t, qt.Equals(median([]float64{3, 1, 2}), 2))
	qt.Check(t, qt.Equals(median([]float64{4, 1, 2, 3}), 2.5))
}

func TestSamples(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples")
	want := []sample{{Tool: "a", Attach: 1.5}, {Tool: "b", Round: 1}}
	qt.Assert(t, qt.IsNil(writeJSON(file, want)))
	f, err := os.Open(file)
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	n := 0
	got, err := readJSON(f, func(sample) { n++ })
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, want))
	qt.Assert(t, qt.Equals(n, 2))

	_, err = readJSON(strings.NewReader("{}\npanic: oh"), func(sample) {})
	qt.Assert(t, qt.ErrorMatches(err, "read samples: .*"))
}

func TestFollow(t *testing.T) {
	root := t.TempDir()
	lib := filepath.Join(root, libraryDirs[1])
	qt.Assert(t, qt.IsNil(os.MkdirAll(lib, 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(lib, "libx.so.1.2"), nil, 0o644)))
	qt.Assert(t, qt.IsNil(os.Symlink(libraryDirs[1]+"/libx.so.1.2", filepath.Join(lib, "libx.so.1"))))
	qt.Assert(t, qt.IsNil(os.Symlink("libloop.so", filepath.Join(lib, "libloop.so"))))

	guest, host, err := findLibrary(root, "libx.so.1")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(guest, libraryDirs[1]+"/libx.so.1"))
	qt.Assert(t, qt.Equals(host, filepath.Join(lib, "libx.so.1.2")))

	_, _, err = findLibrary(root, "liby.so.1")
	qt.Assert(t, qt.ErrorMatches(err, `library liby.so.1: not in .*`))
	_, err = follow(root, filepath.Join(libraryDirs[1], "libloop.so"))
	qt.Assert(t, qt.ErrorMatches(err, ".*too many links"))
}

func TestVersion(t *testing.T) {
	unpacked := []string{"libbpf1_1%3a1.5.0-3_amd64", "libbpf-dev_1%3a1.5.0-3_amd64"}
	qt.Check(t, qt.Equals(libbpfRoot.version(unpacked), "1.5.0-3"))
	qt.Check(t, qt.Equals(bpftraceRoot.version(unpacked), "of unknown version"))
}
