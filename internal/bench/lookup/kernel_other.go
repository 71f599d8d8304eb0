//go:build !linux

package lookup

// KernelMethods returns none: there is no kernel to ask.
func KernelMethods() []Method { return nil }
