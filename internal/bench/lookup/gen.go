package lookup

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -go-package lookup -no-global-types -type request -target bpfel,bpfeb lookup lookup.bpf.c -- -O2 -g -Wall -Werror
