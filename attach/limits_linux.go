package attach

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
)

// spareFiles are the file descriptors that attaching takes for a moment.
const spareFiles = 16

// filesFor returns how many file descriptors groups keep open: a link and a
// program for each target, or for each group.
func filesFor(groups []*group) int {
	n := 0
	for _, g := range groups {
		links := 1
		if g.mechanism.PerFunction() {
			links = len(g.indexes)
		}
		n += 2 * links
	}
	return n
}

// raiseLimits makes room for the files of groups under the soft limit, which
// the function that it returns sets back: open files stay open.
func raiseLimits(groups []*group) (restore func(), err error) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		return nil, err
	}
	need := uint64(filesFor(groups) + spareFiles)
	if need += openFiles(); need <= old.Cur {
		return func() {}, nil
	}
	if need > old.Max {
		return nil, tooManyFiles(need, old.Max)
	}
	raised := unix.Rlimit{Cur: need, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
		return nil, fmt.Errorf("attach: raise RLIMIT_NOFILE to %d: %w", need, err)
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) }, nil
}

func tooManyFiles(need, allowed uint64) error {
	return fmt.Errorf("attach: %w (EMFILE): %d file descriptors are needed and %d allowed; raise the hard limit (ulimit -Hn), narrow the patterns, or use a mechanism with one link for all, %s or %s",
		unix.EMFILE, need, allowed, kallscope.KprobeMulti, kallscope.FentryMulti)
}

// fileLimit returns how many files the process may open.
func fileLimit() uint64 {
	var l unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l) // fails for bad arguments only
	return l.Cur
}

// openFiles returns how far the descriptors in use reach: the lowest free one.
func openFiles() uint64 {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	unix.Close(fd)
	return uint64(fd)
}
