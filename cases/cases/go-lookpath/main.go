package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

func sick(n int) int {
	total := 0
	for i := 0; i < n; i++ {
		if _, err := exec.LookPath("cat"); err == nil {
			total++
		}
	}
	return total
}

func cured(n int) int {
	total := 0
	_, err := exec.LookPath("cat")
	for i := 0; i < n; i++ {
		if err == nil {
			total++
		}
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
