//go:build !linux

package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/kallscope/kallscope"
)

// Attachment is what is attached; there is none outside of Linux.
type Attachment struct{}

// Supported fails: only Linux has BPF for kernel functions.
func Supported(m kallscope.Mechanism) error {
	return fmt.Errorf("%s: %w: only Linux has BPF for kernel functions", m, kallscope.ErrNotSupported)
}

func attachPlan(context.Context, Programs, *kallscope.Plan, Options) (*Attachment, error) {
	return nil, errors.New("attach: only Linux has BPF for kernel functions")
}
