package bpf

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNotSupp is ENOTSUPP of include/linux/errno.h, which user space should not
// see but does. The C library has no text for it.
const ErrNotSupp = unix.Errno(524)

// ErrnoText returns the number in an error by name and text, such as "EINVAL
// (invalid argument)": people search for the one and read the other. Without a
// number it is the error's own text.
func ErrnoText(err error) string {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	switch errno {
	case ErrNotSupp:
		return "ENOTSUPP (524)"
	case unix.EOPNOTSUPP: // package unix has its other name, ENOTSUP
		return "EOPNOTSUPP (operation not supported)"
	}
	return fmt.Sprintf("%s (%s)", unix.ErrnoName(errno), errno.Error())
}
