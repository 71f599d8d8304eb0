package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/testutil"
)

// actEnv makes the test program a workload, or the tool itself.
const actEnv = "KALLSCOPE_TEST_ACT"

func TestMain(m *testing.M) {
	act, arg, _ := strings.Cut(os.Getenv(actEnv), ":")
	n, _ := strconv.Atoi(arg)
	switch act {
	case "getppid":
		runtime.LockOSThread()
		for range n {
			unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
		os.Exit(0)
	case "pread":
		preads(n)
		os.Exit(0)
	case "mixed":
		mixed(time.Duration(n) * time.Second)
		os.Exit(0)
	case "kallscope":
		debug.SetGCPercent(gcPercent)
		os.Unsetenv(actEnv)
		os.Exit(run(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
	}
	os.Exit(m.Run())
}

func preads(n int) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		os.Exit(3)
	}
	b := make([]byte, 1)
	for range n {
		if got, err := unix.Pread(int(f.Fd()), b, 0); got != 1 || err != nil {
			os.Exit(4)
		}
	}
}

// mixed forks, execs and talks over loopback.
func mixed(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{actEnv + "=getppid:10"}
		if err := cmd.Run(); err != nil {
			os.Exit(5)
		}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			os.Exit(6)
		}
		_, _ = unix.Write(fds[0], make([]byte, 4096))
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
}

type countResult struct {
	functions []countJSON
	summary   countSummary
}

func (r *countResult) calls(t *testing.T, name string) uint64 {
	t.Helper()
	for _, f := range r.functions {
		if f.Name == name {
			return f.Calls
		}
	}
	t.Fatalf("no row of %s among %d", name, len(r.functions))
	return 0
}

// count runs kallscope count --json and reads its records. act is the workload.
func countCalls(t *testing.T, act string, args ...string) *countResult {
	t.Helper()
	needKprobeMulti(t)
	return countBy(t, act, args...)
}

// countBy is countCalls where the mechanism is known to be there.
func countBy(t *testing.T, act string, args ...string) *countResult {
	t.Helper()
	t.Setenv(actEnv, act)
	args = append([]string{"count", "--json"}, args...)
	out, speech, status := tool(append(args, "--", "/proc/self/exe")...)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, speech)
	}
	r := new(countResult)
	for line := range strings.Lines(out) {
		var f countJSON
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(line), &f)))
		qt.Assert(t, qt.Equals(f.Schema, countSchema))
		if f.Type == "function" {
			r.functions = append(r.functions, f)
			continue
		}
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(line), &r.summary)))
	}
	s := &r.summary
	qt.Assert(t, qt.Equals(s.Type, "summary"))
	qt.Assert(t, qt.Equals(s.Matched, s.Targets+s.Skipped))
	qt.Assert(t, qt.Equals(s.Targets, s.Attached+s.Refused))
	qt.Assert(t, qt.Equals(s.Unknown, 0))
	return r
}

func needKprobeMulti(t *testing.T) {
	t.Helper()
	testutil.Guest(t)
	if err := attach.Supported(kallscope.KprobeMulti); err != nil {
		testutil.NotOn(t, err, "6.12", "7.3")
		t.Skip(err)
	}
}

// TestGuestExact: the count of one process is exact, alone and with everything
// attached, and by return probes.
func TestGuestExact(t *testing.T) {
	r := countCalls(t, "getppid:10000", "syscall:getppid", "--command-only")
	qt.Assert(t, qt.Equals(r.calls(t, "__x64_sys_getppid"), 10000))
	qt.Assert(t, qt.Equals(r.summary.Calls, 10000))

	r = countCalls(t, "getppid:10000", "syscall:getppid", "--command-only", "--mechanism", "kretprobe.multi")
	qt.Assert(t, qt.Equals(r.calls(t, "__x64_sys_getppid"), 10000))

	r = countCalls(t, "pread:5000", "syscall:pread64", "vfs_read", "ksys_pread64", "tcp_*", "--command-only")
	qt.Assert(t, qt.Equals(r.calls(t, "__x64_sys_pread64"), 5000))
	qt.Assert(t, qt.IsTrue(r.calls(t, "vfs_read") >= 5000))
}

// TestGuestByMechanism: every mechanism that a kernel has counts the same.
func TestGuestByMechanism(t *testing.T) {
	testutil.Guest(t)
	for _, m := range kallscope.Mechanisms() {
		t.Run(m.String(), func(t *testing.T) {
			if err := attach.Supported(m); err != nil {
				t.Skip(err) // package attach tests that this is right
			}
			pattern := "tcp_*"
			if m.PerFunction() && os.Getenv("KALLSCOPE_LONG") == "" {
				pattern = "tcp_v4_*"
			}
			before := enabled(t)
			r := countBy(t, "getppid:10000", pattern, "syscall:getppid", "--command-only", "--mechanism", m.String())
			qt.Assert(t, qt.Equals(r.calls(t, "__x64_sys_getppid"), 10000))
			qt.Assert(t, qt.Equals(r.summary.Mechanism, m))
			fmt.Printf("%s: %d attached, %d refused\n", m, r.summary.Attached, r.summary.Refused)
			qt.Assert(t, qt.IsTrue(r.summary.Attached > 20))
			qt.Assert(t, qt.Equals(enabled(t), before))
		})
	}
}

// TestGuestMaxProbes: what would take hours says so and does not begin.
func TestGuestMaxProbes(t *testing.T) {
	testutil.Guest(t)
	_, speech, status := tool("count", "vmlinux:*", "--mechanism", "kprobe", "-d", "1")
	qt.Assert(t, qt.Equals(status, exitError))
	qt.Assert(t, qt.Matches(speech, `(?s).*functions by kprobe take a probe each: about [\d,]+ s to attach and [\d,]+ s to detach; narrow the patterns, or allow it with --max-probes \d+\n`))
}

// TestGuestEverything: all functions of the kernel, under load; the figures add
// up, and nothing stays behind.
func TestGuestEverything(t *testing.T) {
	before := enabled(t)
	r := countCalls(t, "getppid:10000", "*", "--command-only")
	qt.Assert(t, qt.Equals(r.calls(t, "__do_sys_getppid"), 10000))
	qt.Assert(t, qt.IsTrue(r.summary.Attached >= 40000), qt.Commentf("%d attached", r.summary.Attached))
	fmt.Printf("%s: %d attached, %d refused, %d skipped; %d dropped, %d missed\n", r.summary.Kernel.Release,
		r.summary.Attached, r.summary.Refused, r.summary.Skipped, r.summary.Missed.Recursion, r.summary.Missed.Link)
	qt.Assert(t, qt.Equals(enabled(t), before))

	seconds := 5
	if os.Getenv("KALLSCOPE_LONG") != "" {
		seconds = 30
	}
	r = countCalls(t, fmt.Sprintf("mixed:%d", seconds), "*")
	qt.Assert(t, qt.IsTrue(r.summary.Calls > 1000))
	qt.Assert(t, qt.Equals(enabled(t), before))
}

// TestGuestEverythingByMechanism: all functions under load, by each mechanism
// that makes one link for many.
func TestGuestEverythingByMechanism(t *testing.T) {
	testutil.Guest(t)
	if os.Getenv("KALLSCOPE_LONG") == "" {
		t.Skip("takes minutes; set KALLSCOPE_LONG")
	}
	for _, m := range kallscope.Mechanisms() {
		t.Run(m.String(), func(t *testing.T) {
			if err := attach.Supported(m); err != nil || m.PerFunction() {
				t.Skip(err, m)
			}
			before, begin := enabled(t), time.Now()
			r := countBy(t, "mixed:30", "*", "--mechanism", m.String())
			fmt.Printf("%s: %d attached, %d refused, %d calls, %d dropped in %v, all told %v\n", m, r.summary.Attached, r.summary.Refused,
				r.summary.Calls, r.summary.Missed.Recursion, time.Duration(r.summary.Duration), time.Since(begin))
			qt.Assert(t, qt.IsTrue(r.summary.Calls > 1000))
			qt.Assert(t, qt.IsTrue(r.summary.Attached > 38_000))
			qt.Assert(t, qt.Equals(enabled(t), before))
		})
	}
}

func enabled(t *testing.T) string {
	t.Helper()
	testutil.Guest(t)
	list, err := os.ReadFile("/sys/kernel/tracing/enabled_functions")
	qt.Assert(t, qt.IsNil(err))
	return string(list)
}

// TestGuestDuplicates: each function of the most duplicated name is a row of
// its own.
func TestGuestDuplicates(t *testing.T) {
	needKprobeMulti(t)
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: []string{"*"}}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	byName, most := make(map[string]int), ""
	for _, target := range p.Targets {
		byName[target.Name]++
		if byName[target.Name] > byName[most] {
			most = target.Name
		}
	}
	r := countCalls(t, "getppid:1", most, "--all")
	fmt.Printf("%s: %s has %d functions\n", p.Kernel.Release, most, byName[most])
	qt.Assert(t, qt.Equals(len(r.functions), byName[most]))
	qt.Assert(t, qt.IsTrue(byName[most] > 5))
	addrs := make(map[kallscope.Hex]bool)
	for _, f := range r.functions {
		qt.Assert(t, qt.Equals(f.Name, most))
		addrs[f.Addr] = true
	}
	qt.Assert(t, qt.HasLen(addrs, byName[most]))
}

// TestGuestModule: functions of a loaded module attach and count. Which one is
// loaded depends on the guest (vmrun -modules).
func TestGuestModule(t *testing.T) {
	needKprobeMulti(t)
	modules, err := os.ReadFile("/proc/modules")
	qt.Assert(t, qt.IsNil(err))
	module, _, found := strings.Cut(string(modules), " ")
	if !found {
		t.Skip("no module is loaded: vmrun -modules nf_conntrack")
	}
	r := countCalls(t, "getppid:1", module+":*", "--all")
	fmt.Printf("%s: %d of %d functions attached\n", module, r.summary.Attached, r.summary.Targets)
	qt.Assert(t, qt.IsTrue(r.summary.Attached > 0))
	qt.Assert(t, qt.Equals(r.summary.Refused, 0))
	for _, f := range r.functions {
		qt.Assert(t, qt.Equals(f.Module, module))
	}
}

// TestGuestInterrupt: ^C ends a run without an end by itself with 0, and one
// with an end with 130; both print what was counted.
func TestGuestInterrupt(t *testing.T) {
	needKprobeMulti(t)
	for _, test := range []struct {
		args []string
		want int
	}{{[]string{"count", "tcp_*"}, 0}, {[]string{"count", "tcp_*", "-d", "600"}, exitInterrupted}} {
		cmd := exec.Command("/proc/self/exe", test.args...)
		cmd.Env = append(os.Environ(), actEnv+"=kallscope")
		speech := &watched{want: "attached by", seen: make(chan struct{})}
		cmd.Stderr = speech
		qt.Assert(t, qt.IsNil(cmd.Start()))
		select {
		case <-speech.seen:
		case <-time.After(2 * time.Minute):
			t.Fatalf("not attached: %s", speech.String())
		}
		qt.Assert(t, qt.IsNil(cmd.Process.Signal(os.Interrupt)))
		_ = cmd.Wait()
		qt.Assert(t, qt.Equals(cmd.ProcessState.ExitCode(), test.want), qt.Commentf("%s", speech.String()))
		qt.Assert(t, qt.StringContains(speech.String(), "dropped while another ran on the CPU"))
		qt.Assert(t, qt.StringContains(speech.String(), "detached in"))
	}
}

// watched is output that is waited for.
type watched struct {
	want string
	seen chan struct{}

	mu   sync.Mutex
	text string
	done bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(p)
	if !w.done && strings.Contains(w.text, w.want) {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}
