package btfscan_test

import (
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

func ExampleOpen() {
	f, err := btfscan.Open("testdata/cases/btf_min.btf", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for fn := range f.Funcs() {
		proto, err := f.Prototype(fn)
		fmt.Println(fn.ID, proto, err)
	}
	// Output: 3 int demo_fn(int a) <nil>
}
