// Guestinit is nothing but the first process of a virtual machine; see package
// guest. Package vm builds it when the program that uses vm cannot take that
// part itself.
package main

import (
	"fmt"
	"os"

	"github.com/kallscope/kallscope/internal/vm/guest"
)

func main() {
	guest.Main()
	fmt.Fprintln(os.Stderr, "guestinit: not the first process of a kallscope guest; it is started by package vm")
	os.Exit(2)
}
