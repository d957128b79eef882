// Lists each folder, and asks it for a settings file that none has.
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
	if _, err := os.Stat(at + "/.settings"); err == nil {
		found++
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
