//go:build linux

package main

import (
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// The loops of bare calls do a bunch and then pause, or on one CPU there would
// be little else.
const (
	bunch = 100
	pause = 5 * time.Millisecond
)

// mixed does everything side by side until d has passed, and returns how much
// of each it did.
func mixed(d time.Duration) ([]string, error) {
	end := time.Now().Add(d)
	more := func() bool { return time.Now().Before(end) }
	kinds := []struct {
		name string
		do   func(more func() bool) (int, error)
	}{
		{"getppid", repeat(bunch, pause, getppid)},
		{"reads", repeat(bunch, pause, func(n int) error { return reads(n, "/proc/self/exe") })},
		{"forks", repeat(1, 0, forks)},
		{"tcp", overTCP},
		{"udp", overUDP},
	}
	did := make([]string, len(kinds))
	var g errgroup.Group
	for i, k := range kinds {
		g.Go(func() error {
			n, err := k.do(more)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			did[i] = fmt.Sprintf("%s %d", k.name, n)
			return nil
		})
	}
	return did, g.Wait()
}

// repeat returns a function that does n at a time, and pauses, while there is
// more time.
func repeat(n int, pause time.Duration, do func(int) error) func(func() bool) (int, error) {
	return func(more func() bool) (total int, err error) {
		for more() {
			if err := do(n); err != nil {
				return total, err
			}
			total += n
			time.Sleep(pause)
		}
		return total, nil
	}
}
