// Package guest is the first process of a virtual machine started by package
// vm: it mounts what a Linux program expects, loads modules, runs one command
// and powers the machine off.
//
// A program becomes able to be that process by calling [Main] first thing:
//
//	func main() {
//		guest.Main()
//		// not in a guest: go on
//	}
//
// The command's standard streams, its exit status, signals for it and files
// travel as frames (package wire) over one virtio serial port. A serial line
// would be built into every kernel, but is neither binary clean nor fast. What
// is built into Debian's kernels, 8250 serial ports aside:
//
//	               virtio, virtio_ring, virtio_pci   virtio_console
//	5.10 cloud     modules                           module
//	6.1 cloud      modules                           module
//	6.12, full     built in                          built in
//	6.12 cloud     built in                          built in
//	7.3 cloud      built in                          built in
//
// So the kernel log goes to the first serial port everywhere, and on 5.10 and
// 6.1 init loads six small modules (0.4 MB, not compressed there) before
// anything else.
package guest

import (
	"os"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// Active says whether this process is the first one of such a machine.
func Active() bool {
	return os.Getpid() == 1 && os.Getenv(wire.Marker) != ""
}
