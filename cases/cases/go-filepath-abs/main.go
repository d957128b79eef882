package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

func sick(n int) int {
	total := 0
	for i := 0; i < n; i++ {
		p, _ := filepath.Abs("src/file.go")
		total += min(1, len(p))
	}
	return total
}

func cured(n int) int {
	total := 0
	base, _ := os.Getwd()
	for i := 0; i < n; i++ {
		total += min(1, len(filepath.Join(base, "src/file.go")))
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
