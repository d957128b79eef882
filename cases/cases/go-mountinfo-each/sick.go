// Is this folder mounted? /proc/self/mountinfo is opened and read for each question.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func mounted(dir string) bool {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.Fields(s.Text())[4] == dir {
			return true
		}
	}
	return false
}

func main() {
	times, _ := strconv.Atoi(os.Args[1])
	found := 0
	for n := range times {
		if mounted(fmt.Sprint("/none/", n)) {
			found++
		}
	}
	fmt.Println(found)
}
