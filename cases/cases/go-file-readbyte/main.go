package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
)

func sick(n int) int {
	f, _ := os.Open("main.go")
	lines, one := 0, make([]byte, 1)
	for i := 0; i < n; i++ {
		f.Seek(0, 0)
		for {
			if _, err := f.Read(one); err != nil {
				break
			}
			if one[0] == '\n' {
				lines++
			}
		}
	}
	return lines
}

func cured(n int) int {
	f, _ := os.Open("main.go")
	lines := 0
	for i := 0; i < n; i++ {
		f.Seek(0, 0)
		r := bufio.NewReader(f)
		for {
			c, err := r.ReadByte()
			if err != nil {
				break
			}
			if c == '\n' {
				lines++
			}
		}
	}
	return lines
}

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	if os.Args[1] == "sick" {
		fmt.Println(sick(n))
	} else {
		fmt.Println(cured(n))
	}
}
