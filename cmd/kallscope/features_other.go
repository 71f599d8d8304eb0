//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newFeatures(stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "features",
		Short: "Show what the running kernel can do (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("features: there is no Linux kernel to ask")
		},
	}
}
