// Lists each folder, and looks for a settings file in the listing.
package main

import (
	"fmt"
	"os"
	"strconv"
)

var left, found int

func walk(at string) {
	if left--; left < 0 {
		return
	}
	names, _ := os.ReadDir(at)
	for _, name := range names {
		if name.Name() == ".settings" {
			found++
		}
	}
	for _, name := range names {
		if name.IsDir() {
			walk(at + "/" + name.Name())
		}
	}
}

func main() {
	left, _ = strconv.Atoi(os.Args[1])
	walk("/usr/share")
	fmt.Println(found)
}
