// Writes files that os.Create has emptied.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	top, _ := os.MkdirTemp("/dev/shm", "size")
	text := make([]byte, 2000)
	total := 0
	for i := 0; i < n; i++ {
		f, err := os.Create(top + "/f")
		if err != nil {
			panic(err)
		}
		wrote, _ := f.Write(text)
		total += wrote
		f.Close()
	}
	os.RemoveAll(top)
	fmt.Println(total)
}
