// Package bench measures the product against floors taken in the same run: what
// the kernel's own system calls and files cost without it.
package bench

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -go-package bench -no-global-types -target bpfel,bpfeb floor floor.bpf.c -- -O2 -g -Wall -Werror
