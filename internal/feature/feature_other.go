//go:build !linux

// Package feature asks the running kernel which mechanisms it has; without
// Linux there are none.
package feature
