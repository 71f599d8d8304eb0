package btfscan

import (
	"os"
	"syscall"
)

// sysfsMagic is SYSFS_MAGIC of include/uapi/linux/magic.h.
const sysfsMagic = 0x62656572

// mapSysfs maps a file of sysfs, or returns nil. sysfs answers ENODEV where the
// attribute has no mmap: vmlinux before 6.16, and the BTF of modules.
func mapSysfs(f *os.File, size int64) ([]byte, func() error) {
	var fs syscall.Statfs_t
	if size <= 0 || syscall.Fstatfs(int(f.Fd()), &fs) != nil || uint32(fs.Type) != sysfsMagic {
		return nil, nil
	}
	// The kernel refuses shared maps here.
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
	if err != nil {
		return nil, nil
	}
	return data, func() error { return os.NewSyscallError("munmap", syscall.Munmap(data)) }
}
