package kimage_test

import (
	"fmt"

	"github.com/kallscope/kallscope/kimage"
)

func Example() {
	im, err := kimage.Open("testdata/cases/vmlinuz_zstd.img")
	if err != nil {
		panic(err)
	}
	defer im.Close()
	fmt.Println(im.Format(), im.Arch())
	btf, err := im.BTF()
	if err != nil {
		panic(err)
	}
	fmt.Println(len(btf.Data), "bytes of BTF,", btf.From)
	_, err = im.Symbols()
	fmt.Println(err)
	// Output:
	// bzImage (zstd) amd64
	// 87 bytes of BTF, section .BTF
	// symbol table of the kernel: not in this image (CONFIG_KALLSYMS is off, or its form is not known)
}
