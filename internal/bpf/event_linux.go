package bpf

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// An event is a perf event with a program, where the kernel has no links for
// them.
type event struct {
	link.Link // nil: no other package can implement the interface
	fd        int
	once      sync.Once
	err       error
}

// Close ends the event.
func (e *event) Close() error {
	e.once.Do(func() { e.err = unix.Close(e.fd) })
	return e.err
}

// Update fails.
func (e *event) Update(*ebpf.Program) error { return notSupported("update") }

// Pin fails.
func (e *event) Pin(string) error { return notSupported("pin") }

// Unpin fails.
func (e *event) Unpin() error { return notSupported("unpin") }

// Detach fails.
func (e *event) Detach() error { return notSupported("detach") }

// Info fails.
func (e *event) Info() (*link.Info, error) { return nil, notSupported("info") }

func notSupported(what string) error {
	return fmt.Errorf("%s a perf event: %w: it is no link before v5.15", what, link.ErrNotSupported)
}
