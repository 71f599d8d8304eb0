//go:build !linux

package btfscan

import "os"

// mapSysfs is for Linux only.
func mapSysfs(*os.File, int64) ([]byte, func() error) { return nil, nil }
