package main

import (
	"os"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestGuestLockdown comes last, by the name of its file: lockdown cannot be
// taken back.
func TestGuestLockdown(t *testing.T) {
	needKprobeMulti(t)
	const path = "/sys/kernel/security/lockdown"
	if err := os.WriteFile(path, []byte("integrity"), 0o600); err != nil {
		testutil.NotOn(t, err, "6.12", "7.3", "6.1", "5.10")
		t.Skip(err)
	}
	r := countCalls(t, "getppid:100", "syscall:getppid", "--command-only")
	qt.Assert(t, qt.Equals(r.summary.Calls, 100))

	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("confidentiality"), 0o600)))
	_, speech, status := tool("list", "vfs_rea*")
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Assert(t, qt.StringContains(speech, "which functions can be traced is not known: "))
	qt.Assert(t, qt.StringContains(speech, `kernel lockdown is "confidentiality"`))
	r = countCalls(t, "getppid:100", "syscall:getppid", "--command-only")
	qt.Assert(t, qt.Equals(r.summary.Calls, 100))
	err := attach.Supported(kallscope.Kprobe)
	qt.Assert(t, qt.ErrorIs(err, kallscope.ErrRestricted))
	qt.Assert(t, qt.ErrorMatches(err, `kprobe: restricted: kernel lockdown is "confidentiality"; use another mechanism`))
	r = countBy(t, "getppid:100", "syscall:getppid", "--command-only", "--mechanism", "fentry")
	qt.Assert(t, qt.Equals(r.summary.Calls, 100))
}
