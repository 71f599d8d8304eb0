//go:build !linux

package attach

import (
	"context"
	"errors"

	"github.com/kallscope/kallscope"
)

// Attachment is what is attached; there is none outside of Linux.
type Attachment struct{}

func attachPlan(context.Context, Programs, *kallscope.Plan, Options) (*Attachment, error) {
	return nil, errors.New("attach: only Linux has BPF for kernel functions")
}
