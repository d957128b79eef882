package main

import (
	"fmt"
	"os"
)

//go:noinline
func ask(p string) int {
	if _, e := os.Stat(p); e == nil {
		return 1
	}
	return 0
}

//go:noinline
func outer(n int) int {
	c := 0
	for i := 0; i < n; i++ {
		c += ask("/etc")
	}
	return c
}
func main() { fmt.Println(outer(400)) }
