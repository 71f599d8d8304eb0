package count

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -go-package count -no-global-types -target bpfel,bpfeb count count.bpf.c -- -O2 -g -Wall -Werror
