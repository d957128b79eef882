// Watches some folders.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

func main() {
	n := 2000
	if len(os.Args) > 1 {
		n, _ = strconv.Atoi(os.Args[1])
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		panic(err)
	}
	watched := map[string]bool{}
	scans := 0
	for i := 0; i < n; i++ {
		for _, dir := range []string{"/tmp", "/usr/bin", "/etc"} {
			if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE); err != nil {
				panic(err)
			}
			watched[dir] = true
		}
		scans++
	}
	fmt.Println(scans, len(watched))
}
