package main

import (
	"fmt"
	"os"
	"strconv"
)

func sick(n int) int {
	total := 0
	for i := 0; i < n; i++ {
		h, _ := os.Hostname()
		total += min(1, len(h)) * min(1, os.Getpid())
	}
	return total
}

func cured(n int) int {
	total := 0
	h, _ := os.Hostname()
	pid := os.Getpid()
	for i := 0; i < n; i++ {
		total += min(1, len(h)) * min(1, pid)
	}
	return total
}

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	if os.Args[1] == "sick" {
		fmt.Println(sick(n))
	} else {
		fmt.Println(cured(n))
	}
}
