package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestGuestWithoutMechanism: kernels without kprobe.multi say so in one
// sentence, quickly, and list and resolve work.
func TestGuestWithoutMechanism(t *testing.T) {
	testutil.Guest(t)
	want := ""
	switch testutil.Release(t) {
	case "6.1":
		want = "built without CONFIG_FPROBE (EOPNOTSUPP); --mechanism fentry"
	case "5.10":
		want = "older than this mechanism (Linux 5.18); --mechanism fentry"
	default:
		t.Skip("this kernel has kprobe.multi")
	}
	_, speech, status := tool("count", "tcp_*")
	qt.Assert(t, qt.Equals(status, exitError))
	qt.Assert(t, qt.StringContains(speech, want))
	qt.Assert(t, qt.Equals(strings.Count(speech, "\n"), 1))

	out, speech, status := tool("list", "tcp_*")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	qt.Assert(t, qt.IsTrue(strings.Count(out, "\n") > 250), qt.Commentf("%s", speech))
	out, _, status = tool("resolve", "vfs_read", "syscall:openat")
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Assert(t, qt.Matches(out, `(0x[0-9a-f]{16}\tvmlinux\t\S+\t#\d+(,#\d+)*\t\S+\n){2}`))
}

// as runs the tool as another user and returns what it says.
func as(t *testing.T, uid uint32, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	testutil.Guest(t)
	return asWith(t, uid, nil, args...)
}

// asWith runs the tool as another user with capabilities.
func asWith(t *testing.T, uid uint32, caps []uintptr, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	self := filepath.Join(t.TempDir(), "kallscope")
	data, err := os.ReadFile("/proc/self/exe")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(self, data, 0o755)))
	for dir := self; dir != "/"; dir = filepath.Dir(dir) {
		qt.Assert(t, qt.IsNil(os.Chmod(dir, 0o755)))
	}
	var out, speech bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), actEnv+"=kallscope")
	cmd.Stdout, cmd.Stderr = &out, &speech
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, AmbientCaps: caps}
	_ = cmd.Run()
	return out.String(), speech.String(), cmd.ProcessState.ExitCode()
}

// TestGuestUnprivileged: names work for everybody, counting says what it takes.
func TestGuestUnprivileged(t *testing.T) {
	out, speech, status := as(t, 65534, "list", "vfs_rea*")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	qt.Assert(t, qt.StringContains(out, "vfs_read\n"))
	qt.Assert(t, qt.Matches(speech, `(?s)addresses are hidden \(kernel.kptr_restrict is \d, CAP_SYSLOG is absent\): functions are known by name only\n.*`))
	qt.Assert(t, qt.StringContains(speech, "which functions can be traced is not known: "))
	qt.Assert(t, qt.StringContains(speech, "run as root"))

	_, speech, status = as(t, 65534, "count", "vfs_read", "-d", "1")
	qt.Assert(t, qt.Equals(status, exitError))
	qt.Assert(t, qt.Matches(speech, `kallscope: count: kprobe.multi: restricted: not permitted: .*; run as root, or with CAP_BPF and CAP_PERFMON\n`))
}

// TestGuestParanoid: Debian's kernels refuse perf events to who may load BPF
// programs; that is no lack of the kernel, and says which setting it is.
func TestGuestParanoid(t *testing.T) {
	testutil.Guest(t)
	caps := []uintptr{unix.CAP_BPF, unix.CAP_PERFMON}
	testutil.Sysctl(t, "kernel.perf_event_paranoid", "3")
	_, speech, status := asWith(t, 1000, caps, "count", "vfs_read", "--mechanism", "kprobe", "-d", "1")
	qt.Assert(t, qt.Equals(status, exitError))
	qt.Assert(t, qt.StringContains(speech, "kprobe: restricted: kernel.perf_event_paranoid does not permit it: "))
	qt.Assert(t, qt.StringContains(speech, "set it to 2: it is 3, "))
	testutil.Sysctl(t, "kernel.perf_event_paranoid", "2")
	out, _, _ := asWith(t, 1000, caps, "features")
	qt.Assert(t, qt.Matches(out, `(?s).*\nmechanism  kprobe +usable .*`))
}

// TestGuestFtraceOff: what the kernel would attach and never call is refused.
func TestGuestFtraceOff(t *testing.T) {
	testutil.Guest(t)
	const setting = "/proc/sys/kernel/ftrace_enabled"
	err := os.WriteFile(setting, []byte("0"), 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) {
		testutil.NotOn(t, err, "6.12", "6.1", "5.10")
		t.Skip("this kernel does not let ftrace be switched off")
	}
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(os.WriteFile(setting, []byte("1"), 0o600))) })
	for _, mechanism := range []string{"fentry", "kprobe"} {
		_, speech, status := tool("count", "vfs_read", "--mechanism", mechanism, "-d", "1")
		qt.Assert(t, qt.Equals(status, exitError))
		qt.Assert(t, qt.Equals(speech, "kallscope: count: "+mechanism+": restricted: kernel.ftrace_enabled is 0, so nothing that is attached would be called; sysctl kernel.ftrace_enabled=1\n"))
	}
}

// TestGuestHiddenAddresses: under kptr_restrict=2 names work, for counting too.
func TestGuestHiddenAddresses(t *testing.T) {
	testutil.Guest(t)
	testutil.Sysctl(t, "kernel.kptr_restrict", "2")
	out, speech, status := tool("list", "vfs_rea*")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	qt.Assert(t, qt.StringContains(out, "vfs_read\n"))
	qt.Assert(t, qt.StringContains(speech, "addresses are hidden (kernel.kptr_restrict is 2, CAP_SYSLOG is present)"))
	r := countCalls(t, "getppid:10000", "__do_sys_get*", "--command-only")
	qt.Assert(t, qt.Equals(r.calls(t, "__do_sys_getppid"), 10000))
	// Another name than the one that the kernel lists for this address.
	r = countCalls(t, "getppid:1000", "syscall:getppid", "--command-only")
	qt.Assert(t, qt.Equals(r.calls(t, "__x64_sys_getppid"), 1000))
}

// withoutSite returns the address of a function without a site.
func withoutSite(t *testing.T) string {
	t.Helper()
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: []string{"vmlinux:*"}}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	for skip := range p.Skipped.All() {
		if skip.Reason == kallscope.ReasonNoSite {
			return fmt.Sprintf("%#x", skip.Addr)
		}
	}
	t.Fatal("every function has a site")
	return ""
}

// TestGuestWithoutFacts: a missing list or BTF is said; what can work does.
func TestGuestWithoutFacts(t *testing.T) {
	needKprobeMulti(t)
	t.Run("BTF", func(t *testing.T) {
		testutil.Cover(t, "/sys/kernel/btf")
		_, speech, status := tool("list", "vfs_rea*")
		qt.Assert(t, qt.Equals(status, exitDone))
		qt.Assert(t, qt.StringContains(speech, "functions that are in BTF only are missing: BTF of vmlinux: "))
		_, speech, status = tool("list", "--arg", "struct file *")
		qt.Assert(t, qt.Equals(status, exitError))
		qt.Assert(t, qt.StringContains(speech, "select by type: BTF of vmlinux: "))
		qt.Assert(t, qt.Equals(countCalls(t, "getppid:100", "syscall:getppid", "--command-only").summary.Calls, 100))
	})
	t.Run("tracefs", func(t *testing.T) {
		untraceable := withoutSite(t)
		testutil.Cover(t, "/proc/kcore")
		testutil.Cover(t, "/sys/kernel/tracing")
		_, speech, status := tool("list", "vfs_rea*")
		qt.Assert(t, qt.Equals(status, exitDone))
		qt.Assert(t, qt.StringContains(speech, "which functions can be traced is not known: "))
		// The kernel itself decides then.
		r := countCalls(t, "getppid:100", "syscall:getppid", untraceable, "--command-only")
		qt.Assert(t, qt.Equals(r.summary.Calls, 100))
		qt.Assert(t, qt.Equals(r.summary.Refused, 1))
	})
	t.Run("kallsyms", func(t *testing.T) {
		testutil.Cover(t, "/proc/kallsyms")
		_, speech, status := tool("list", "vfs_rea*")
		qt.Assert(t, qt.Equals(status, exitError))
		qt.Assert(t, qt.StringContains(speech, "input is empty"))
	})
}

// TestGuestNothing: what matches nothing, or only what cannot be attached to.
func TestGuestNothing(t *testing.T) {
	needKprobeMulti(t)
	_, speech, status := tool("count", "no_such_function_*", "-d", "1")
	qt.Assert(t, qt.Equals(status, exitNoMatch))
	qt.Assert(t, qt.Equals(speech, "no_such_function_*: no function matches\n"))
	_, speech, status = tool("count", "jiffies", "-d", "1")
	qt.Assert(t, qt.Equals(status, exitNoMatch))
	qt.Assert(t, qt.StringContains(speech, "jiffies skipped: data-symbol: a data symbol, not a function"))
}

// binary returns the real tool where the guest has it (vmrun -copy
// bin/kallscope:/bin/kallscope), else the test program, and how many MiB more that
// one may take for its own code and the testing packages.
func binary() (path string, extra int64) {
	if _, err := os.Stat("/bin/kallscope"); err == nil {
		return "/bin/kallscope", 0
	}
	return "/proc/self/exe", 5
}

// TestGuestMemory: everything listed, resolved and counted within its bounds of
// resident memory, mapped counters included: 24, 25 and 48 MiB with guest time
// counted in instructions (vmrun -icount). Otherwise emulated guests show up to
// twice that: the garbage collector lags behind. Short runs leave it out.
func TestGuestMemory(t *testing.T) {
	testutil.Guest(t)
	if testing.Short() {
		t.Skip("a measurement; run it by name under vmrun -icount, without -short")
	}
	for _, test := range []struct {
		args []string
		mib  int64
	}{{[]string{"list", "*"}, 24}, {[]string{"resolve", "*"}, 25}, {[]string{"count", "*", "-d", "0.1"}, 48}} {
		if test.args[0] == "count" {
			needKprobeMulti(t)
		}
		path, extra := binary()
		cmd := exec.Command(path, test.args...)
		cmd.Env = append(os.Environ(), actEnv+"=kallscope")
		begin := time.Now()
		out, err := cmd.Output()
		qt.Assert(t, qt.IsNil(err))
		kib := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
		fmt.Printf("%v: %.1f MiB resident, %d bytes out, %v\n", test.args, float64(kib)/1024, len(out), time.Since(begin).Round(time.Millisecond))
		qt.Assert(t, qt.IsTrue(kib <= (test.mib+extra)<<10), qt.Commentf("%v: %d KiB, at most %d MiB wanted", test.args, kib, test.mib))
	}
}

// TestGuestKernelFile: list and resolve print the same from a snapshot as from
// the running kernel; a snapshot made without root says what it lacks, and names
// work.
func TestGuestKernelFile(t *testing.T) {
	testutil.Guest(t)
	t.Chdir(t.TempDir())
	out, speech, status := tool("snapshot")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	qt.Assert(t, qt.Equals(out, ""))
	file, rest, _ := strings.Cut(speech, ": ")
	qt.Assert(t, qt.Matches(file, `.*\.ksnap`), qt.Commentf("%s", speech))
	qt.Assert(t, qt.Matches(rest, `\d\.\d MB: symbols.vmlinux .*, sites \d+ kB, kprobe-blacklist .*, btf \d.* MB, .*\n`))
	fmt.Print(speech)
	for _, args := range [][]string{{"list", "*"}, {"list", "tcp_*", "--skipped"}, {"resolve", "vmlinux:vfs_*"}, {"list", "vmlinux:*", "--arg", "struct sock *", "--json"}} {
		want, wantSpeech, wantStatus := tool(args...)
		out, speech, status := tool(append(args, "--kernel", file)...)
		qt.Assert(t, qt.IsTrue(out == want), qt.Commentf("%q: %d bytes, want %d", args, len(out), len(want)))
		qt.Assert(t, qt.Equals(speech, wantSpeech))
		qt.Assert(t, qt.Equals(status, wantStatus))
	}

	out, speech, status = as(t, 1000, "snapshot", "-o", "-")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	qt.Assert(t, qt.Matches(speech, `(?s)without addresses: kernel.kptr_restrict is \d, CAP_SYSLOG is absent\nwithout sites: .*; run as root\nwithout kprobe-blacklist: .*; run as root\nwithout deny-lists: .*\nstandard output: .*`))
	qt.Assert(t, qt.IsNil(os.WriteFile("user.ksnap", []byte(out), 0o600)))
	want, _, _ := as(t, 1000, "list", "vfs_*")
	out, speech, status = tool("list", "vfs_*", "--kernel", "user.ksnap")
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Assert(t, qt.Equals(out, want))
	qt.Assert(t, qt.StringContains(speech, "CAP_SYSLOG is absent"))
}
