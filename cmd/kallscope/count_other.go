//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newCount(stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "count PATTERN...",
		Short: "Count calls (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("count: only Linux has BPF for kernel functions")
		},
	}
}
