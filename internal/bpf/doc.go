//go:build !linux

// Package bpf makes the bpf(2) calls that cilium/ebpf has nothing for; there
// are none outside of Linux.
package bpf
