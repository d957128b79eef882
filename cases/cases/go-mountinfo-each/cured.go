// The same with the list of what is mounted read once.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func mounts() map[string]bool {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	found := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		found[strings.Fields(s.Text())[4]] = true
	}
	return found
}

func main() {
	times, _ := strconv.Atoi(os.Args[1])
	mounted, found := mounts(), 0
	for n := range times {
		if mounted[fmt.Sprint("/none/", n)] {
			found++
		}
	}
	fmt.Println(found)
}
