//go:build !linux

package guest

// Main returns at once: guests are Linux.
func Main() {}
